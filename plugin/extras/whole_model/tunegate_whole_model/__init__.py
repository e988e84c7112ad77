"""A whole model as one thing: one object without a runtime, or one launch."""
