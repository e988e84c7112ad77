"""Workers of tunegate on a Ray cluster."""
