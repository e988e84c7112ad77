"""Latency of whole models after tuning, beside the stock tuner and other runtimes."""
