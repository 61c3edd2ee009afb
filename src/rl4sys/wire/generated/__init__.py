"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "8522ec95a16fd77dc560c2c05cbc9614c9603929834d45681dc3d219024ef1c7"
"""Of the proto files that this code was made from."""
