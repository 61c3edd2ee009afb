"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""

SOURCES_SHA256 = "2d007534d34cda6559df0a6b2600c529b758bb1cf943be302aeeac5f9d84ffda"
"""Of the proto files that this code was made from."""
