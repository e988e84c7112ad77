"""Schedules that nobody has measured: picked by the prior, and held to the default in the model."""
