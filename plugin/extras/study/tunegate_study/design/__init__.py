"""The across-stack study, pure: which cells, and what their times say."""
