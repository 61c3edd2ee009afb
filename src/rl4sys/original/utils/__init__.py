"""What original programs import from `rl4sys.utils`: structured logs, serialised actions, small profilers."""
