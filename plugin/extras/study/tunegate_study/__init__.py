"""Studies across the stack: which choices of runtime, precision, layout, tuning and threads change
what is fast."""
