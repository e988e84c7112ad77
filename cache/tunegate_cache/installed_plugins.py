"""The plugins that are installed beside us, by entry point. Nothing of a checkout is read: only the
directories that this interpreter installs into, and our own.

If our sources run without being installed, as in the Action, one of our extras is found if its
folder is on the import path: whoever starts us decides which.
"""

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
    """A plugin that is installed but unusable. The text is one line."""


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """One entry point: `value` is `module:attribute`, `offered_by` the packages that register it,
    such as "store-example 1.0"."""

    name: str
    value: str
    offered_by: tuple[str, ...]


def find_plugins(group: str, places: Sequence[Path] | None = None) -> Mapping[str, Plugin]:
    """Returns the plugins of an entry-point group, sorted by name. Names of ours cannot be taken
    over."""
    by_name: dict[str, list[Plugin]] = defaultdict(list)
    for plugin in _read_registrations(group, _places() if places is None else places):
        by_name[plugin.name].append(plugin)
    if places is None:
        for plugin in _extras_on_path(group):
            by_name[plugin.name].append(plugin)
    own = _own_registrations(group)
    return {name: own.get(name) or _merge(by_name[name]) for name in sorted({*own, *by_name})}


def plugin_named(group: str, name: str) -> Plugin | None:
    """Returns the plugin of that name. One of ours is found without reading other packages."""
    return _own_registrations(group).get(name) or find_plugins(group).get(name)


def find_ignored(group: str) -> Sequence[Plugin]:
    """Returns what other packages register under our names."""
    own = _own_registrations(group)
    return [plugin for plugin in _read_registrations(group, _places()) if plugin.name in own]


def load_plugin(plugin: Plugin) -> object:
    """Returns the object that the entry point names. Raises PluginError whatever the plugin
    does."""
    package = " and ".join(plugin.offered_by)
    if len(plugin.offered_by) > 1:
        message = f'{package} both register "{plugin.name}". Uninstall one of them.'
        raise PluginError(message)
    module, _, attribute = plugin.value.partition(":")
    try:
        # Standard output carries a command's product.
        with redirect_stdout(sys.stderr):
            return getattr(importlib.import_module(module), attribute)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        message = f'{package}: "{plugin.value}" cannot be loaded ({_reason(error)})'
        raise PluginError(message) from error


def _reason(error: BaseException) -> str:
    """Returns one line, or only the type of an exception whose text fails."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 -- the text is code of the plugin's
        text = type(error).__name__
    return " ".join(text.split())[:_MAX_REASON]


def _places() -> tuple[Path, ...]:
    """Returns this environment's package directories. `sys.path` may contain others."""
    import sysconfig  # noqa: PLC0415 -- as below

    paths = sysconfig.get_paths()
    each = (Path(paths["purelib"]), Path(paths["platlib"]), _SOURCES)
    return tuple(dict.fromkeys(place.resolve() for place in each))


def _own_registrations(group: str) -> Mapping[str, Plugin]:
    """Returns the registrations of the running sources: if they are no installed package, as in the
    Action, those of pyproject.toml."""
    project = _SOURCES.parent / "pyproject.toml"
    if _SOURCES.name != "cache" or not project.is_file():
        return {p.name: p for p in _read_registrations(group, (_SOURCES,), is_ours=True)}
    return {plugin.name: plugin for plugin in _read_declarations(project, group)}


def _extras_on_path(group: str) -> Iterator[Plugin]:
    """Yields the plugins of our extras whose sources are on the path, beside ours. An extra that is
    also installed from these sources is the same plugin."""
    if _SOURCES.name != "cache":
        return
    extras = _SOURCES.parent / "plugin" / "extras"
    for entry in dict.fromkeys(sys.path):
        place = Path(entry)
        if place.parent == extras and (project := place / "pyproject.toml").is_file():
            yield from _read_declarations(project, group)


def _read_declarations(project: Path, group: str) -> Iterator[Plugin]:
    if f'.entry-points."{group}"]' not in _text(project):  # help does not wait for a TOML parser
        return
    described = _project_table(project)
    package = f"{described['name']} {described['version']}"
    for name, value in described.get("entry-points", {}).get(group, {}).items():
        yield Plugin(name=name, value=value, offered_by=(package,))


@cache
def _text(project: Path) -> str:
    return project.read_text("utf-8")


@cache
def _project_table(project: Path) -> Mapping[str, Any]:
    """Returns the table `project` of a file of ours, which is read again for each group."""
    # Measuring processes look for one of ours, and each import slows their start.
    import tomllib  # noqa: PLC0415

    described: Mapping[str, Any] = tomllib.loads(_text(project))["project"]
    return described


def _read_registrations(
    group: str, places: Sequence[Path], *, is_ours: bool = False
) -> Iterator[Plugin]:
    for place in places:
        for file in sorted(place.glob("*.dist-info/entry_points.txt")):
            name, _, version = file.parent.name.removesuffix(".dist-info").partition("-")
            if (name == _OURS) == is_ours:
                package = f"{name.replace('_', '-')} {version}"
                yield from _read_entry_points(file, group, package)


def _read_entry_points(file: Path, group: str, package: str) -> Iterator[Plugin]:
    """Yields the entry points of a file in the packaging specification's format. An unreadable one
    registers nothing."""
    try:
        text = file.read_text("utf-8")
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


def _merge(offers: Sequence[Plugin]) -> Plugin:
    """Returns the only plugin of a name, naming all packages that register it."""
    packages = dict.fromkeys(package for plugin in offers for package in plugin.offered_by)
    return msgspec.structs.replace(offers[0], offered_by=tuple(packages))
