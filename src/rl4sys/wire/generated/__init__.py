"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "aa5d2906b28a05c089b77b68bd856059a5e8308bcdf48eb02c43516b9a54dbcf"
"""Of the proto files that this code was made from."""
