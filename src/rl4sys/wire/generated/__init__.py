"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "a913eb6267068d0a99e8846784038daba33a56f08608d808e4d6680cdc7b8861"
"""Of the proto files that this code was made from."""
