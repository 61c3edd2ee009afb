"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "13cf33a99e2e0ad3c750f4eb24c871f938ff41fea31d70164b72f3fce0481f03"
"""Of the proto files that this code was made from."""
