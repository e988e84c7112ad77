"""The across-stack study, pure: its cells, and the statistics of their times."""
