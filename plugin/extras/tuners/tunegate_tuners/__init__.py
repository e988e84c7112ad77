"""Lends the cache to other tuners: what they store is only bytes to us."""
