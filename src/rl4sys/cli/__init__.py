"""Turns commands into calls on what is below."""
