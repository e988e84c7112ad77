"""`tunegate study`: cells to builds, builds to launches, launches to pages."""
