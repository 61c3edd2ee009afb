"""`python -m rl4sys.cli` is `rl4sys`."""

from rl4sys.cli.main import main

main()
