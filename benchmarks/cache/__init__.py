"""The shared cache under load, faults and hostile bytes, and what it costs."""
