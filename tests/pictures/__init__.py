"""Pictures in the documentation, and what they are pictures of."""
