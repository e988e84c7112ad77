"""`python -m tunegate_action` is the action."""

from tunegate_action.entry import entry

if __name__ == "__main__":
    entry()
