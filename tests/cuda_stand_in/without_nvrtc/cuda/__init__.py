"""Stands before the bindings that are installed: an environment that has none."""
