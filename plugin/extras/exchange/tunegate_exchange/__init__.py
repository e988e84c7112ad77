"""Schedules on their way between the cache and plain TVM's databases."""
