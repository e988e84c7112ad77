"""Shared state of the builds of one open model: its precisions, and the schedules tried for
them."""
