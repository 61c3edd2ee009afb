"""Groups of runs compared: statistics, tables and learning curves."""
