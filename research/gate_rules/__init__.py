"""The verdicts of gates on recorded launches: of ours, and of others."""
