"""How long whole commands take, and what survives that processes die."""
