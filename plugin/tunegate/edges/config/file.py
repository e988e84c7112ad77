"""`tunegate.yaml` to a Config. Every mistake is one line: file, key, what is wrong, what to do."""

from __future__ import annotations

import errno
from collections import Counter
from pathlib import Path

import msgspec

from tunegate.config import AUTO, LOCAL, RUNTIME_ARTIFACT, CacheConfig, Config, TargetConfig
from tunegate.edges.config.model_entries import entry_problems
from tunegate.edges.config.problem import problem_of
from tunegate.edges.config.retired_keys import say_retired, without_retired_keys
from tunegate.edges.config.strict_yaml import YamlProblemError, read_yaml
from tunegate.errors import ConfigError, ConfigKey, config_error
from tunegate.known_extras import GROUPS, missing
from tunegate_cache.format.names import zone_problem
from tunegate_cache.format.signing import BadKeyError, TrustedKeys
from tunegate_cache.installed_plugins import installed, plugin_named
from tunegate_cache.stores.open_store import BadAddressError, kind_of
from tunegate_cache.stores.store_kind import StoreAddress

CONFIG_FILE = "tunegate.yaml"

_RUNTIMES, _WORKERS = GROUPS["runtime"], GROUPS["executor"]
_RAREST = 0.02
_MAX_BYTES = 16 * 2**20


def load_config(path: Path) -> Config:
    """Read the file. Raises ConfigError."""
    try:
        text = _text(path)
    except FileNotFoundError as error:
        message = f"{path}: not found. Run `tunegate init` to write one."
        raise ConfigError(message) from error
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path}: cannot be read ({error}). Fix the file, or name another with --config."
        raise ConfigError(message) from error
    config, retired = _parsed(text, str(path))
    for key in retired:
        say_retired(str(path), key)
    return config


def _text(path: Path) -> str:
    """A device can be read for ever."""
    with path.open("rb") as file:
        read = file.read(_MAX_BYTES + 1)
    if len(read) > _MAX_BYTES:
        raise OSError(errno.EFBIG, "more than 16 MiB")
    return read.decode("utf-8")


def parse_config(text: str, where: str) -> Config:
    """Read a configuration's text; `where` names it in messages. Raises ConfigError."""
    return _parsed(text, where)[0]


def _parsed(text: str, where: str) -> tuple[Config, tuple[str, ...]]:
    """The configuration, and the keys of an earlier version in it."""
    try:
        content = read_yaml(text)
    except YamlProblemError as error:
        raise _refused(ConfigKey(where, line=error.line), str(error)) from error
    if content is None:
        raise _refused(ConfigKey(where), "empty. Run `tunegate init` to see what belongs in it.")
    content, retired = without_retired_keys(content)
    try:
        config = msgspec.convert(content, Config)
    except msgspec.ValidationError as error:
        key, problem = problem_of(error, content)
        raise _refused(ConfigKey(where, key), problem) from error
    check_config(config, where)
    return config, retired


def check_config(config: Config, where: str, *, is_merged: bool = False) -> None:
    """Checks what no type can say, of a file or of the merged configuration of base and head.
    Raises ConfigError."""
    _check_cache(config.cache, where)
    _check_targets(config, where)
    _check_executor(config, where)
    _check_models(config, where, is_merged=is_merged)
    _check_prices(config, where)
    if 0 < config.gate.rare_launches < _RAREST:
        message = (
            f"gate.rare-launches: {config.gate.rare_launches:g} is rarer than {_RAREST:g}, the "
            "rarest share that can be looked for. Write 0 to switch it off."
        )
        raise _refused(ConfigKey(where, "gate.rare-launches"), message)


def _check_models(config: Config, where: str, *, is_merged: bool) -> None:
    problems = list(entry_problems(config, is_merged=is_merged))
    if problems:
        lines = [_on_one_line(where, each.text) for each in problems]
        raise config_error(lines, ConfigKey(where, problems[0].key))


def _check_executor(config: Config, where: str) -> None:
    """One that an extra would bring may be missing here: another job tunes."""
    name = config.executor
    if name != LOCAL and not missing("executor", name) and plugin_named(_WORKERS, name) is None:
        known = ", ".join((LOCAL, *installed(_WORKERS)))
        message = f"executor: {name} is not installed. Write one of {known}."
        raise _refused(ConfigKey(where, "executor"), message)


def _check_targets(config: Config, where: str) -> None:
    names = [target.name for target in config.targets]
    for name, count in Counter(names).items():
        if count > 1:
            message = f'targets: the name "{name}" is given {count} times. Rename one.'
            raise _refused(ConfigKey(where, "targets"), message)
    for number, target in enumerate(config.targets):
        if target.runtime != AUTO and plugin_named(_RUNTIMES, target.runtime) is None:
            about = ConfigKey(where, f"targets[{number}].runtime")
            raise _refused(about, _unknown_runtime(target))
        if target.artifact != RUNTIME_ARTIFACT and _is_unknown_form(target.artifact):
            about = ConfigKey(where, f"targets[{number}].artifact")
            line = missing("artifact", target.artifact) or "no installed package writes it."
            raise _refused(about, f"target {target.name}: {line}")


def _is_unknown_form(artifact: str) -> bool:
    return plugin_named(GROUPS["artifact"], artifact) is None


def _unknown_runtime(target: TargetConfig) -> str:
    if line := missing("runtime", target.runtime):
        return f"target {target.name}: {line}"
    known = ", ".join((AUTO, *installed(_RUNTIMES)))
    problem = f"target {target.name}: runtime {target.runtime} is not installed"
    return f"{problem}. Write one of {known}."


def _check_prices(config: Config, where: str) -> None:
    if config.budget.usd is not None and config.budget.usd_per_hour is None:
        unpriced = [target.name for target in config.targets if target.usd_per_hour is None]
        if unpriced:
            message = (
                f"budget.usd needs a price: give usd-per-hour under budget, "
                f"or on target {unpriced[0]}."
            )
            raise _refused(ConfigKey(where, "budget.usd"), message)


def _check_cache(cache: CacheConfig, where: str) -> None:
    try:
        kind_of(StoreAddress(url=cache.url))
    except BadAddressError as error:
        why = missing("store", cache.url.partition(":")[0]) or f"{error}."
        raise _refused(ConfigKey(where, "cache.url"), f"cache.url: {why}") from error
    for zone in (cache.zone, *cache.read_zones, *cache.trusted_keys):
        problem = zone_problem(zone)
        if problem is not None:
            raise _refused(ConfigKey(where, "cache"), f"cache: {problem}.")
    try:
        TrustedKeys(cache.trusted_keys)
    except BadKeyError as error:
        about = ConfigKey(where, "cache.trusted-keys")
        raise _refused(about, f"cache.trusted-keys: {error}.") from error


def _refused(about: ConfigKey, problem: str) -> ConfigError:
    """A ConfigError on one line, whatever the file's own words are."""
    return ConfigError(_on_one_line(about.file, problem), about)


def _on_one_line(file: str, problem: str) -> str:
    return f"{file}: {' '.join(problem.splitlines())}"
