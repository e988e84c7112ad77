"""Models under the packages of two environments: made from lock files, or named by the user."""
