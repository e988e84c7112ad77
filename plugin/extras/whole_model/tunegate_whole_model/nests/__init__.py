"""A scheduled model taken apart into loop nests, for one launch of all."""
