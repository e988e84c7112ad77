"""The tuning tasks of a change, what the cache knows of them, and what is tuned where."""
