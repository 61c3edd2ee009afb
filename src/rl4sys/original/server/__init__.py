"""The training server under its original path."""
