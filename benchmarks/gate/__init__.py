"""What the gate says of launches whose truth is known."""
