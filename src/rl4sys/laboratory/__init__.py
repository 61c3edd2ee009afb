"""Work with many runs: index, compare, sweep, tune and verify them."""
