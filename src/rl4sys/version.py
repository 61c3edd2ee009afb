"""The version of this release, as users, clients and servers see it."""

__version__ = "0.2.0"
