"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "5c0dd41d4dca709f5de08a175f178e1514e4cde562f679f4b2569002ca61b7e2"
"""Of the proto files that this code was made from."""
