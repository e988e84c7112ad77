"""Benchmarks of the gate on launches whose truth is known."""
