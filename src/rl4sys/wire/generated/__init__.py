"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "adf044c796ff1c4c6d7f9976cbac11311a62a6551e3b622c3c2dba2638d106ee"
"""Of the proto files that this code was made from."""
