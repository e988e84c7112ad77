"""The machine: git, processes, files, progress, devices."""
