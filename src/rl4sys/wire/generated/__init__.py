"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "49efcd19a761411fd1af564b760a794024e90c3f7d768ce726cc8f4f149e526f"
"""Of the proto files that this code was made from."""
