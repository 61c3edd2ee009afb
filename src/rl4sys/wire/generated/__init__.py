"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "6e68d48cf644eb3716370504d4d7143f7fe20ad2b22515451c52ac9f65d51006"
"""Of the proto files that this code was made from."""
