"""`python -m tunegate_action` is the action."""

from __future__ import annotations

from tunegate_action.main import entry

if __name__ == "__main__":
    entry()
