"""Where learners run: the host's side, and the worker with torch."""
