"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "6180e3a665e4c0aef2cafcdebe1791451a28c5122e0247f38eba40c6776e5ae0"
"""Of the proto files that this code was made from."""
