"""What tuning finds, what it costs, and what each part of it is worth."""
