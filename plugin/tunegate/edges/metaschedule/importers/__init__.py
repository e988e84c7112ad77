"""Rewrites of a model before TVM's importer sees it: one family of operators in each file."""
