"""The CI that a job runs in: its event, and where results are shown."""
