"""What a researcher does with many runs: find, compare, sweep, tune and verify them."""
