"""What an operator sees of a training server: its status over all processes, and what is wrong with it."""
