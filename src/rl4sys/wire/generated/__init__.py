"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "e5f892cd4675906d64b0fe61094d4ae66eb5b2b66202dfd8b412cc4b7dde3d19"
"""Of the proto files that this code was made from."""
