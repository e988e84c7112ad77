"""Builds of both sides, elections, and launches in fresh processes."""
