"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "b7a0355eda571d52f7a55b6082ac2dd03b26c0a53edfa2dc1476e68070d60c69"
"""Of the proto files that this code was made from."""
