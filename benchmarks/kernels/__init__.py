"""Operators one by one: forms, layouts, precisions, and native code."""
