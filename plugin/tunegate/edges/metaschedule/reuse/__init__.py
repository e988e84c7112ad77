"""What the builds of one open model have in common: its precisions, and what is tried for them."""
