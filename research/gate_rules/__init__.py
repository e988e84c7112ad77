"""What gates would have said about recorded launches: ours, and those of others."""
