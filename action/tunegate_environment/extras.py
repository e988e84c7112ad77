"""The extras that a workflow names. Their sources and locks are in the action's own checkout: the
workspace cannot add to them."""

from collections.abc import Mapping
from pathlib import Path

VARIABLE = "TUNEGATE_EXTRAS"


class UnknownExtraError(Exception):
    """No extra has that name. The text is one line."""


def extras_for(folder: Path, environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Returns the directories of the requested extras, each with its sources and
    `requirements.lock`. Raises UnknownExtraError."""
    extras = {
        path.parent.name.replace("_", "-"): path.parent
        for path in sorted(folder.glob("*/pyproject.toml"))
    }
    names = environment.get(VARIABLE, "").replace(",", " ").split()
    for name in names:
        if name not in extras:
            message = f'input extras: "{name}" is not an extra. There are {", ".join(extras)}.'
            raise UnknownExtraError(message)
    return tuple(extras[name] for name in dict.fromkeys(names))


def locks_of(extras: tuple[Path, ...]) -> tuple[Path, ...]:
    """Returns the locks of these extras that name a package."""
    locks = (extra / "requirements.lock" for extra in extras)
    return tuple(lock for lock in locks if "==" in lock.read_text(encoding="utf-8"))
