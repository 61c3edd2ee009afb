"""Trained policies: found, described, exported, compared with the training network and timed."""
