"""Benchmarks of tuning: its gains, its costs, and the worth of each of its parts."""
