"""`python -m tunegate` is the `tunegate` command."""

from __future__ import annotations

from tunegate.cli import entry

if __name__ == "__main__":
    entry()
