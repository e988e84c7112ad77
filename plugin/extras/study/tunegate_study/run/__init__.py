"""`tunegate study`: from cells to builds, launches and pages."""
