"""Checks of the dynamics model of a run against steps that it has not learned from."""
