"""What may run a model, a folder each. The protocol is `runtime.py`."""
