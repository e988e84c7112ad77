"""Benchmarks of the works behind the product: each measures its main claim by its own
definition."""
