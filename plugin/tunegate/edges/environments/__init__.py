"""Environments of Python that somebody named: what is installed there, and whether it runs here."""
