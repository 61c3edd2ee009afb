"""`python -m rl4sys`: the command `rl4sys`."""

from rl4sys.cli.main import main

main()
