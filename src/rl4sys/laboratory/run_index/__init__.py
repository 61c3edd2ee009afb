"""The index of runs: records, filters, labels and cleanup."""
