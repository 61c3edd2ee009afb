"""Sweeps: fixed plans of trials."""
