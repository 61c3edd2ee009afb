"""Checks that a run can be repeated and resumed exactly."""
