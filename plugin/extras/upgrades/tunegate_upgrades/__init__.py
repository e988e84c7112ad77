"""Models under the packages of watched lock files."""
