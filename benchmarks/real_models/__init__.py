"""Other people's models: what runs, how fast, and under which runtime."""
