"""The command line of a benchmark, in one call."""

from __future__ import annotations

import argparse
import atexit
import logging
import signal
import sys
import tempfile
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO, cast

from benchmarks.kit.results import Tee, save

_TERMINATED = 143


class Choice(NamedTuple):
    """One of these values; `default` may be none of them."""

    values: Collection[Any]
    default: Any


class Many(NamedTuple):
    """Several values of this type; they must be given unless there is a default."""

    kind: type
    is_required: bool = True


def command_line(
    told: str | None, *arguments: str | tuple[str, type | Choice], **options: Any
) -> argparse.Namespace:
    """Parses the command line; `told` is the help. An argument is `"model"`, `"models..."`,
    `"model=squeezenet"`, or has a type. An option has a default, of its type, or only a type. From
    here on the libraries' warnings and information are left out."""
    parser = argparse.ArgumentParser(
        description=told, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for argument in arguments:
        name, kind = argument if isinstance(argument, tuple) else (argument, str)
        _add_argument(parser, name, kind)
    for name, given in options.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **_settings(given))
    parser.add_argument("--save", metavar="NAME", help="keeps the tables as results/NAME.json")
    parser.add_argument(
        "--merge", action="store_true", help="keeps the saved rows of what is not measured now"
    )
    found = parser.parse_args()
    is_merged = vars(found).pop("merge")
    if (name := vars(found).pop("save")) is not None:
        _keep(name, is_merged=is_merged)
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    return found


def _keep(name: str, *, is_merged: bool) -> None:
    """Saves the tables of this process when it ends, also when it is told to."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))
    tee = Tee(sys.stdout)
    sys.stdout = cast(TextIO, tee)
    atexit.register(lambda: print(f"saved: {save(name, tee.text, is_merged=is_merged)}"))


def _add_argument(parser: argparse.ArgumentParser, written: str, kind: type | Choice) -> None:
    name, has_default, default = written.partition("=")
    is_many = name.endswith("...")
    settings: dict[str, Any] = {}
    if is_many:
        settings["nargs"] = "*" if has_default else "+"
    elif has_default:
        settings["nargs"] = "?"
    if has_default:
        settings["default"] = default.split() if is_many else default
    if isinstance(kind, Choice):
        settings["choices"] = kind.values
    else:
        settings["type"] = kind
    parser.add_argument(name.removesuffix("..."), **settings)


def _settings(given: Any) -> dict[str, Any]:
    if given is False:
        return {"action": "store_true"}
    if isinstance(given, type):
        return {"type": given}
    if isinstance(given, Choice):
        many = {"nargs": "+"} if isinstance(given.default, list) else {}
        return {"choices": given.values, "default": given.default, **many}
    if isinstance(given, Many):
        return {"type": given.kind, "nargs": "+", "required": given.is_required}
    if isinstance(given, list):
        return {"type": type(given[0]) if given else str, "nargs": "+", "default": given}
    return {"type": type(given), "default": given}


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for as long as it is needed."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
