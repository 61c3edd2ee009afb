"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "a287cd2c3424361aa76dfbac72965a6c6d2916f1b043d721069fdbb849ba13f9"
"""Of the proto files that this code was made from."""
