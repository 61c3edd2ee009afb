"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "1f9443e5e62bd5f5960bcadfebed017f240c659b10dc755363c05b75dc13a3ea"
"""Of the proto files that this code was made from."""
