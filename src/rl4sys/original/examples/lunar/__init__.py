"""Lunar Lander as a client of a training server."""
