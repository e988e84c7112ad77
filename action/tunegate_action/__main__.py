"""`python -m tunegate_action` is the action."""

from tunegate.isolation import isolate


def entry() -> None:
    """Isolates the process before it imports anything that could lie in the checkout."""
    isolate()
    from tunegate_action.main import entry as run  # noqa: PLC0415 -- the first that could lie there

    run()


if __name__ == "__main__":
    entry()
