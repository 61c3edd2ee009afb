"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "d5fbe87886a1bb2618dfa40cd763536a6cc4dfd8d1703942d3d2c8f13c0ccc2f"
"""Of the proto files that this code was made from."""
