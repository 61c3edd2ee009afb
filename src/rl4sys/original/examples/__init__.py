"""Examples under their original paths."""
