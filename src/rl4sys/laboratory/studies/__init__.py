"""Studies: searches for good settings with Optuna."""
