"""The models to compare and the rules that count: changes, configuration, policy, waivers."""
