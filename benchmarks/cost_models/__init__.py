"""Benchmarks of how well the cost models rank candidates that nobody has measured."""
