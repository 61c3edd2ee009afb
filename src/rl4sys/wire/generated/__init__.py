"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "8c94f743e49456a33fb100131dcf60cedc606b453ff2d39412c3cc78cd9a47df"
"""Of the proto files that this code was made from."""
