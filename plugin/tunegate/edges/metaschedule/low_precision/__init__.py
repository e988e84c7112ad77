"""Products of a model in bfloat16, by the tiles of the processor (AMX)."""
