"""The history of runs as pages, and the search for the commit that made a model slow."""
