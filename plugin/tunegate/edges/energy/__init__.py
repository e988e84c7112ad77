"""Counters of energy: of processors, of GPUs, of the machine."""
