"""A whole model as one launch: its kernels in stages, with a barrier between two."""
