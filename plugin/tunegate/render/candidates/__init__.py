"""The candidates of a model in the HTML report: what each costs in time and in accuracy."""
