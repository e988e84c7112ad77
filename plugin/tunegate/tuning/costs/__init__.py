"""What tuning costs: what a plan is expected to, and what a run has used."""
