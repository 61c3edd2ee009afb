"""Episodes of a trained policy: simulated, shown on a screen, recorded as videos."""
