"""Costs of tuning: those that a plan expects, and those that a run has."""
