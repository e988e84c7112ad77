"""How well the cost models rank what nobody has measured."""
