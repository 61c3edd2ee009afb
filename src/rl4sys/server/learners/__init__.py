"""The learners of a server, as the serving process sees them; it imports no torch."""
