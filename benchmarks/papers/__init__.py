"""What each of the works behind the product is known for, measured here by its own definition."""
