"""Measurements, a folder for each subject; each is run as a module, in the root of the checkout."""
