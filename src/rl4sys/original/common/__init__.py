"""Actions and trajectories under their original paths."""
