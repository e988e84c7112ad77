"""A whole model as one shared object with a C header: no Python and no TVM to load it."""
