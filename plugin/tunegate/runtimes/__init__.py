"""What can run a model: one folder per runtime, and their protocol in `runtime.py`."""
