"""The parts of the advice: layers that got slower, and what tuning lacked."""
