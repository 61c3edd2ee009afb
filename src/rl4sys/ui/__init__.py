"""The page in a browser: runs, comparisons, sweeps, and the servers with their learners and clients."""
