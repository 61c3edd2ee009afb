"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "3e7ff37ed910de70ddcc96421fcf5e0393b85801aacf94e58f06c42fc3540506"
"""Of the proto files that this code was made from."""
