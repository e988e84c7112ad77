"""Studies across the stack: how the choice of runtime, precision, layout, tuning and threads
changes what is fast."""
