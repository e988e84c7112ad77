"""Lends the cache to other tuners: what they store is bytes to us."""
