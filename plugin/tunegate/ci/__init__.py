"""The CI that a job runs in: its event, and where it is told what came out."""
