"""A compiled module as a shared object that needs no TVM."""
