"""What is compared, and whose rules count: changes, configuration, policy, waivers."""
