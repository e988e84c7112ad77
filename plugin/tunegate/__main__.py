"""The `tunegate` command, and `python -m tunegate`, which begins with the checkout on its path."""

from tunegate.isolation import isolate


def entry() -> None:
    """Isolates the process before it imports anything that could lie in the checkout."""
    isolate()
    from tunegate.cli import entry as run  # noqa: PLC0415 -- the first import that leaves this package

    run()


if __name__ == "__main__":
    entry()
