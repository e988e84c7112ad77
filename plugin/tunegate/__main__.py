"""The `tunegate` command, and `python -m tunegate`, which begins with the checkout on its path."""

from tunegate.cli.entry import entry

if __name__ == "__main__":
    entry()
