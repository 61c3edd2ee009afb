"""The command line: turns commands into calls on the packages below."""
