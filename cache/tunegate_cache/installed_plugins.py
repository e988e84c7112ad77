"""The plugins that are installed beside us, by entry point. Nothing of a checkout is read:
only the directories that this interpreter installs into, and our own.

Where our sources run without being installed, as in the Action, an extra of ours is found when its
folder is on the path that modules are imported from: whoever starts us decides which.
"""

from __future__ import annotations

import importlib
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

_OURS = "tunegate"
_SOURCES = Path(__file__).resolve().parents[1]
_MAX_REASON = 300


class PluginError(Exception):
    """A plugin that is installed and cannot be used. The text is one line."""


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """One entry point: `value` is `module:attribute`, `offered_by` the packages that register it,
    such as "store-example 1.0"."""

    name: str
    value: str
    offered_by: tuple[str, ...]


def installed(group: str, places: Sequence[Path] | None = None) -> Mapping[str, Plugin]:
    """Returns the plugins of an entry-point group by name, in the order of their names. A name of
    ours is ours, whoever else registers it."""
    found: dict[str, list[Plugin]] = defaultdict(list)
    for plugin in _registered(group, _places() if places is None else places):
        found[plugin.name].append(plugin)
    if places is None:
        for plugin in _of_extras(group):
            found[plugin.name].append(plugin)
    own = _own_registrations(group)
    return {name: own.get(name) or _merged(found[name]) for name in sorted({*own, *found})}


def plugin_named(group: str, name: str) -> Plugin | None:
    """Returns the plugin of that name. One of ours is found without reading other packages."""
    return _own_registrations(group).get(name) or installed(group).get(name)


def ignored(group: str) -> Sequence[Plugin]:
    """Returns what other packages register under names of ours."""
    own = _own_registrations(group)
    return [plugin for plugin in _registered(group, _places()) if plugin.name in own]


def load_plugin(plugin: Plugin) -> object:
    """Returns what the entry point names. Raises PluginError whatever the plugin does."""
    package = " and ".join(plugin.offered_by)
    if len(plugin.offered_by) > 1:
        message = f'{package} both register "{plugin.name}". Uninstall one of them.'
        raise PluginError(message)
    module, _, attribute = plugin.value.partition(":")
    try:
        # Standard output is what a command answers.
        with redirect_stdout(sys.stderr):
            return getattr(importlib.import_module(module), attribute)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        message = f'{package}: "{plugin.value}" cannot be loaded ({_reason(error)})'
        raise PluginError(message) from error


def _reason(error: BaseException) -> str:
    """Returns one line; an exception whose text fails has its type alone."""
    try:
        said = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 -- the text is code of the plugin's
        said = type(error).__name__
    return " ".join(said.split())[:_MAX_REASON]


def _places() -> tuple[Path, ...]:
    """Returns where packages of this environment are. `sys.path` may name other directories."""
    import sysconfig  # noqa: PLC0415 -- as below

    paths = sysconfig.get_paths()
    each = (Path(paths["purelib"]), Path(paths["platlib"]), _SOURCES)
    return tuple(dict.fromkeys(place.resolve() for place in each))


def _own_registrations(group: str) -> Mapping[str, Plugin]:
    """Returns the registrations of the sources that run now: where they are no installed package,
    as in the action, those of pyproject.toml."""
    project = _SOURCES.parent / "pyproject.toml"
    if _SOURCES.name != "cache" or not project.is_file():
        return {p.name: p for p in _registered(group, (_SOURCES,), is_ours=True)}
    return {plugin.name: plugin for plugin in _declared_in(project, group)}


def _of_extras(group: str) -> Iterator[Plugin]:
    """Yields those of our extras whose sources are on the path, and whose sources lie beside
    ours. One that is installed too, from these sources, is the same plugin."""
    if _SOURCES.name != "cache":
        return
    extras = _SOURCES.parent / "plugin" / "extras"
    for entry in dict.fromkeys(sys.path):
        place = Path(entry)
        if place.parent == extras and (project := place / "pyproject.toml").is_file():
            yield from _declared_in(project, group)


def _declared_in(project: Path, group: str) -> Iterator[Plugin]:
    if f'.entry-points."{group}"]' not in _text(project):  # help does not wait for a TOML parser
        return
    described = _described(project)
    package = f"{described['name']} {described['version']}"
    for name, value in described.get("entry-points", {}).get(group, {}).items():
        yield Plugin(name=name, value=value, offered_by=(package,))


@cache
def _text(project: Path) -> str:
    return project.read_text("utf-8")


@cache
def _described(project: Path) -> Mapping[str, Any]:
    """Returns the table `project` of a file of ours, which is asked for each group."""
    # Processes that measure look for one of ours, and each import shows in how they start.
    import tomllib  # noqa: PLC0415

    described: Mapping[str, Any] = tomllib.loads(_text(project))["project"]
    return described


def _registered(group: str, places: Sequence[Path], *, is_ours: bool = False) -> Iterator[Plugin]:
    for place in places:
        for listed in sorted(place.glob("*.dist-info/entry_points.txt")):
            name, _, version = listed.parent.name.removesuffix(".dist-info").partition("-")
            if (name == _OURS) == is_ours:
                package = f"{name.replace('_', '-')} {version}"
                yield from _listed(listed, group, package)


def _listed(listed: Path, group: str, package: str) -> Iterator[Plugin]:
    """Reads the file format of the packaging specification "Entry points". What cannot be read
    registers nothing."""
    try:
        text = listed.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return
    if group not in text:  # of a hundred packages two have one: the others cost only a look
        return
    from configparser import ConfigParser, Error  # noqa: PLC0415 -- as above

    parser = ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # names keep their case
    try:
        parser.read_string(text)
    except Error:
        return
    if parser.has_section(group):
        for name, value in parser.items(group):
            yield Plugin(name=name, value=value, offered_by=(package,))


def _merged(offers: Sequence[Plugin]) -> Plugin:
    """Returns the only plugin of a name, or one that names all who register it."""
    packages = dict.fromkeys(package for plugin in offers for package in plugin.offered_by)
    return msgspec.structs.replace(offers[0], offered_by=tuple(packages))
