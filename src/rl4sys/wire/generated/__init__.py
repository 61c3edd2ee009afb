"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "dc6c53ecf33eaaf401c126d2ade74a19f2770cd614e814ca9cc517acc711ff73"
"""Of the proto files that this code was made from."""
