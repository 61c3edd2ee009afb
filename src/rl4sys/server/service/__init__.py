"""The calls of the training service, one file each, on plain messages."""
