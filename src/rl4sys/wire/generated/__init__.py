"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "c981a5d7858de059b9c8671f2ece004a79e32c9b3fa97c06a8944f28d70fa54e"
"""Of the proto files that this code was made from."""
