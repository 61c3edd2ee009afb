"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "ec8296ce5a7001ed1d3f1fdc7e2fed4bfb3da756f39f9ebcf5d36f79bc57808b"
"""Of the proto files that this code was made from."""
