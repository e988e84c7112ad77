"""Signed verdicts: made where a model was gated, checked where it is deployed."""
