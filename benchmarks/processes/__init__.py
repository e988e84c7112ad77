"""Benchmarks of whole commands: the time that they take, and the data that survives their death."""
