"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "3b289892b55852db4683d8f373b6f895ce0453adebfdaf6b9ce3fcf84f41cf28"
"""Of the proto files that this code was made from."""
