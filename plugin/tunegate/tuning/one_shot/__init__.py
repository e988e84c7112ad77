"""A search of one batch: what it may have, and when it goes on."""
