"""Keeps a checkout out of this process: no module, program or library comes from it.

It runs before any other import, so it imports only what every Python has loaded already.
"""

import os
import sys

_DIRECTORIES = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH")
"""Variables with directories to search. An empty or relative entry means the working directory."""
_LIBRARIES = ("LD_PRELOAD", "LD_AUDIT")
_READ_BY_LOADER = ("LD_LIBRARY_PATH", *_LIBRARIES)
"""Read once, when a process starts."""
_OURS = ("action", "plugin", "cache")


def isolate() -> None:
    """Runs first in every command. Restarts the process if its loader was told to search the
    working directory, or if it cannot name every file: those of a tree are in UTF-8."""
    for place in (os.getcwd(), *_named_directories(sys.argv[1:])):
        keep_out(place)
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(absolute_only(before))
    flags = [] if sys.getfilesystemencoding() == "utf-8" else ["-X", "utf8"]
    if flags:
        os.environ["PYTHONUTF8"] = "1"
    if flags or any(before.get(name, "") != os.environ.get(name, "") for name in _READ_BY_LOADER):
        os.execv(sys.executable, [sys.executable, *flags, *sys.orig_argv[1:]])


def keep_out(directory: str) -> None:
    """Removes this directory, and the checkout that contains it, from all later imports."""
    place = os.path.realpath(directory)
    checkout = _checkout_of(place)
    sys.path[:] = [
        entry
        for entry in sys.path
        if _is_of_the_environment(entry) or not _is_refused(entry, place, checkout)
    ]


def absolute_only(variables: dict[str, str]) -> dict[str, str]:
    """Returns the variables without places that depend on the working directory."""
    safe_variables = dict(variables)
    for name in _DIRECTORIES:
        entries = _entries(name, safe_variables.pop(name, ""))
        if absolute := ":".join(entry for entry in entries if os.path.isabs(entry)):
            safe_variables[name] = absolute
    for name in _LIBRARIES:
        # A library without a slash is searched for in the system's directories.
        files = safe_variables.pop(name, "").replace(":", " ").split()
        if safe := " ".join(file for file in files if "/" not in file or os.path.isabs(file)):
            safe_variables[name] = safe
    return safe_variables


def _named_directories(arguments: list[str]) -> list[str]:
    """Returns directories named on the command line: `--repository ../other`, or a model's."""
    values = [
        argument.partition("=")[2] if argument.startswith("-") else argument
        for argument in arguments
    ]
    places = [
        value if os.path.isdir(value) else os.path.dirname(value) for value in values if value
    ]
    return [place for place in places if os.path.isdir(place)]


def _entries(name: str, value: str) -> list[str]:
    """Splits a list of directories. The loader takes semicolons as well as colons."""
    return (value.replace(";", ":") if name == "LD_LIBRARY_PATH" else value).split(":")


def _checkout_of(place: str) -> str | None:
    """Returns the nearest parent directory with a `.git`, which nobody can commit."""
    while not os.path.lexists(os.path.join(place, ".git")):
        above = os.path.dirname(place)
        if above == place:
            return None
        place = above
    return place


def _is_of_the_environment(entry: str) -> bool:
    """Returns whether the entry is Python's own, installed there, or our running sources. An
    environment may lie in a checkout."""
    libraries = [
        os.path.join(prefix, folder, "")
        for prefix in (sys.prefix, sys.base_prefix, sys.exec_prefix)
        for folder in ("lib", sys.platlibdir)
    ]
    return entry in _own_sources() or entry.startswith(tuple(libraries))


def _own_sources() -> list[str]:
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    above, name = os.path.split(root)
    if name not in _OURS:
        return [root]
    extras = os.path.join(root, "extras")
    names = sorted(os.listdir(extras)) if os.path.isdir(extras) else []
    sources = [os.path.join(above, name) for name in _OURS]
    return sources + [os.path.join(extras, each) for each in names]


def _is_refused(entry: str, place: str, checkout: str | None) -> bool:
    """Returns whether the entry is the place, or lies in the checkout. A link in a checkout belongs
    to the checkout, wherever it leads."""
    if not os.path.isabs(entry) or os.path.realpath(entry) == place:
        return True
    return checkout in _above(entry) or checkout in _above(os.path.realpath(entry))


def _above(entry: str) -> list[str]:
    """Returns the real paths of the entry and of all directories above it as written."""
    paths = [os.path.realpath(entry)]
    while (above := os.path.dirname(entry)) != entry:
        entry = above
        paths.append(os.path.realpath(entry))
    return paths
