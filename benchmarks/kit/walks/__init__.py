"""Ways that a user goes, walked, timed and pictured."""
