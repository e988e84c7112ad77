"""Reads `tunegate.yaml` into a Config. Every mistake is one line: file, key, what is wrong, what to
do."""

import errno
import os
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec
import yaml

from tunegate.artifacts.changes import PolicyChange
from tunegate.config import (
    AUTO,
    LOCAL,
    RUNTIME_ARTIFACT,
    CacheConfig,
    Config,
    Inputs,
    ModelConfig,
    TargetConfig,
    ValuesConfig,
)
from tunegate.errors import ConfigError, ConfigKey, config_error
from tunegate.known_extras import GROUPS, missing
from tunegate.review.config_problems import KeyProblem, problem_of
from tunegate.review.globs import VERSION
from tunegate.review.model_settings import values_of
from tunegate.system.git.repository import GitRepository
from tunegate.system.strict_yaml import YamlProblemError, read_yaml
from tunegate_cache.format.names import zone_problem
from tunegate_cache.format.signing import BadKeyError, TrustedKeys
from tunegate_cache.installed_plugins import find_plugins, plugin_named
from tunegate_cache.stores.open_store import BadAddressError, kind_of
from tunegate_cache.stores.store_kind import StoreAddress

CONFIG_FILE = "tunegate.yaml"

_RUNTIMES, _WORKERS, _FORMS = GROUPS["runtime"], GROUPS["executor"], GROUPS["artifact"]
_RAREST = 0.02
_MAX_BYTES = 16 * 2**20


def load_config(path: Path) -> Config:
    """Returns the configuration in the file. Raises ConfigError."""
    try:
        text = _text(path)
    except FileNotFoundError as error:
        message = f"{path}: not found. Run `tunegate init` to write one."
        raise ConfigError(message) from error
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path}: cannot be read ({error}). Fix the file, or name another with --config."
        raise ConfigError(message) from error
    return parse_config(text, str(path))


def _text(path: Path) -> str:
    """Returns the text. Only regular files are read: a device could be read for ever."""
    with path.open("rb") as file:
        read = file.read(_MAX_BYTES + 1)
    if len(read) > _MAX_BYTES:
        raise OSError(errno.EFBIG, "more than 16 MiB")
    return read.decode("utf-8")


def parse_config(text: str, where: str) -> Config:
    """Returns the configuration in a text that messages call `where`. Raises ConfigError."""
    try:
        content = read_yaml(text)
    except YamlProblemError as error:
        raise _config_error(ConfigKey(where, line=error.line), str(error)) from error
    if content is None:
        raise _config_error(ConfigKey(where), "empty. `tunegate init --force` writes one.")
    try:
        config = msgspec.convert(content, Config)
    except msgspec.ValidationError as error:
        key, problem = problem_of(error, content)
        raise _config_error(ConfigKey(where, key), problem) from error
    check_config(config, where)
    return config


def check_config(config: Config, where: str, *, is_merged: bool = False) -> None:
    """Checks what types cannot express, for a file or for base and head merged. Raises
    ConfigError."""
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
        raise _config_error(ConfigKey(where, "gate.rare-launches"), message)


def _check_models(config: Config, where: str, *, is_merged: bool) -> None:
    problems = list(entry_problems(config, is_merged=is_merged))
    if problems:
        lines = [_on_one_line(where, problem.text) for problem in problems]
        raise config_error(lines, ConfigKey(where, problems[0].key))


def _check_executor(config: Config, where: str) -> None:
    """Checks the executor's name. One that an extra would bring may be missing here, because
    another job tunes."""
    name = config.executor
    if name != LOCAL and not missing("executor", name) and plugin_named(_WORKERS, name) is None:
        names = ", ".join((LOCAL, *find_plugins(_WORKERS)))
        message = f"executor: {name} is not installed. Write one of {names}."
        raise _config_error(ConfigKey(where, "executor"), message)


def _check_targets(config: Config, where: str) -> None:
    names = [target.name for target in config.targets]
    for name, count in Counter(names).items():
        if count > 1:
            message = f'targets: the name "{name}" is given {count} times. Rename one.'
            raise _config_error(ConfigKey(where, "targets"), message)
    for number, target in enumerate(config.targets):
        if target.runtime != AUTO and plugin_named(_RUNTIMES, target.runtime) is None:
            about = ConfigKey(where, f"targets[{number}].runtime")
            raise _config_error(about, _unknown_runtime(target))
        if target.artifact != RUNTIME_ARTIFACT and plugin_named(_FORMS, target.artifact) is None:
            about = ConfigKey(where, f"targets[{number}].artifact")
            line = missing("artifact", target.artifact) or "no installed package writes it."
            raise _config_error(about, f"target {target.name}: {line}")


def _unknown_runtime(target: TargetConfig) -> str:
    if line := missing("runtime", target.runtime):
        return f"target {target.name}: {line}"
    names = ", ".join((AUTO, *find_plugins(_RUNTIMES)))
    problem = f"target {target.name}: runtime {target.runtime} is not installed"
    return f"{problem}. Write one of {names}."


def _check_prices(config: Config, where: str) -> None:
    if config.budget.usd is not None and config.budget.usd_per_hour is None:
        without_price = [target.name for target in config.targets if target.usd_per_hour is None]
        if without_price:
            message = (
                f"budget.usd needs a price: give usd-per-hour under budget, "
                f"or on target {without_price[0]}."
            )
            raise _config_error(ConfigKey(where, "budget.usd"), message)


def _check_cache(cache: CacheConfig, where: str) -> None:
    try:
        kind_of(StoreAddress(url=cache.url, endpoint_url=cache.endpoint_url))
    except BadAddressError as error:
        why = missing("store", cache.url.partition(":")[0]) or f"{error}."
        raise _config_error(ConfigKey(where, "cache.url"), f"cache.url: {why}") from error
    for zone in (cache.zone, *cache.read_zones, *cache.trusted_keys):
        problem = zone_problem(zone)
        if problem is not None:
            raise _config_error(ConfigKey(where, "cache"), f"cache: {problem}.")
    try:
        TrustedKeys(cache.trusted_keys)
    except BadKeyError as error:
        about = ConfigKey(where, "cache.trusted-keys")
        raise _config_error(about, f"cache.trusted-keys: {error}.") from error


def _config_error(about: ConfigKey, problem: str) -> ConfigError:
    """Returns a ConfigError on one line, whatever words the file has."""
    return ConfigError(_on_one_line(about.file, problem), about)


def _on_one_line(file: str, problem: str) -> str:
    return f"{file}: {' '.join(problem.splitlines())}"


# Checks of `models` entries that types cannot express: names of targets and profiles, forms of
# values.

_PROFILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MODEL_ENDING = ".onnx"
_SHOWN = 5
"""The most names that a message lists: a head may have thousands."""


def entry_problems(config: Config, *, is_merged: bool = False) -> Iterator[KeyProblem]:
    """Yields every problem of every entry, in the order of the file. A merged entry may ask for a
    model without a profile beside its profiles, because base and head need not both have
    profiles."""
    target_names = dict.fromkeys(target.name for target in config.targets)
    for number, entry in enumerate(config.models):
        at = f"models[{number}]"
        if entry.path.count(VERSION) > 1:
            text = f"models: {entry.path}: {VERSION} stands twice. Write it once."
            yield KeyProblem(f"{at}.path", text)
        yield from _of_targets(entry, at, target_names)
        yield from _of_values(entry.inputs, at, entry.path)
        yield from _of_metric(entry, at)
        for name, profile in entry.profiles.items():
            if name or not is_merged:
                yield from _of_profile_name(name, at, entry.path)
            yield from _of_values(profile.inputs, f"{at}.profiles.{name}", entry.path)


def _of_targets(entry: ModelConfig, at: str, targets: Collection[str]) -> Iterator[KeyProblem]:
    names = ", ".join([*targets][:_SHOWN])
    for name in entry.targets:
        if name not in targets:
            text = f'models: {entry.path}: unknown target "{name}". Known: {names}.'
            yield KeyProblem(f"{at}.targets", text)


def _of_metric(entry: ModelConfig, at: str) -> Iterator[KeyProblem]:
    metric = None if entry.accuracy == "same" else entry.accuracy.metric_command
    if metric is None:
        return
    try:
        words = shlex.split(metric.run)
    except ValueError as error:
        problem = f"is not a command line ({error})"
    else:
        problem = "" if words else "is empty. Write a program and its arguments"
    if problem:
        key = f"{at}.accuracy.metric-command.run"
        yield KeyProblem(key, f"models: {entry.path}: accuracy.metric-command.run {problem}.")


def _of_profile_name(name: str, at: str, path: str) -> Iterator[KeyProblem]:
    problem = _name_problem(name)
    if problem:
        yield KeyProblem(f"{at}.profiles", f"models: {path}: profiles: {problem}.")


def _name_problem(name: str) -> str:
    if not name:
        return "a profile has no name. Write one before its colon"
    if not _PROFILE_NAME.fullmatch(name):
        return f'the name "{name}" may have letters, digits, dots, dashes and underscores'
    if name.casefold().endswith(_MODEL_ENDING):
        return f'the name "{name}" looks like that of a file. Leave out {_MODEL_ENDING}'
    return ""


def _of_values(inputs: Inputs, at: str, path: str) -> Iterator[KeyProblem]:
    for name, values in values_of(inputs).items():
        problem = _form_problem(values)
        if problem:
            text = f"models: {path}: inputs.{name}.values: {problem}."
            yield KeyProblem(f"{at}.inputs.{name}.values", text)


def _form_problem(values: ValuesConfig) -> str:
    low, high = values.low, values.high
    forms = (
        low is not None or high is not None,
        values.file is not None,
        bool(values.cases),
        values.sequence is not None,
    )
    if sum(forms) != 1:
        return "give low and high, or a file, or cases, or a sequence"
    if forms[0] and (low is None or high is None):
        return (
            f"{'high' if high is None else 'low'} is missing beside {low if high is None else high}"
        )
    if low is not None and high is not None and low > high:
        return f"low is {low}, which is more than high, {high}"
    return ""


# Finds the line of a key in a configuration's text, to show a problem beside it.

_STEP = re.compile(r"[^.\[\]]+")


def line_of(text: str, key: str) -> int:
    """Returns the line of a key such as `targets[0].name`, or of its nearest parent that is there,
    else the first line."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return 1
    line = 1
    for step in _STEP.findall(key):
        child = _inside(node, step)
        if child is None:
            break
        line, node = child
    return line


def _inside(node: yaml.Node | None, step: str) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if name.value == step:
                return name.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and step.isdigit() and int(step) < len(node.value):
        value = node.value[int(step)]
        return value.start_mark.line + 1, value
    return None


# The configuration of a revision, and the file's place in the checkout.


class FoundConfig(msgspec.Struct, frozen=True):
    """`config` is None without a file, or if `problem` says what is wrong with it."""

    config: Config | None = None
    problem: str = ""


def config_at(repository: GitRepository, revision: str, path: str) -> FoundConfig:
    """Returns the configuration of a revision. Raises RevisionError if its content cannot be
    fetched."""
    entry = repository.entry(revision, path)
    where = f"{path} at {revision[:12]}"
    if entry is None:
        above = repository.submodule_above(revision, path)
        return FoundConfig(problem=f"{where}: {above} is a submodule" if above else "")
    if entry.kind != "file":
        return FoundConfig(problem=f"{where}: it is a {entry.kind}, not a file")
    try:
        text = repository.read(revision, path).decode()
        return FoundConfig(parse_config(text, where))
    except UnicodeDecodeError as error:
        return FoundConfig(problem=f"{where}: not UTF-8 ({error})")
    except ConfigError as error:
        return FoundConfig(problem=str(error))


def whole_changes(
    path: str | None, own: Config | None, before: FoundConfig
) -> tuple[PolicyChange, ...]:
    """Returns a policy change if the head has no configuration any more, or if the base's cannot be
    read."""
    if before.problem:
        return (
            _whole_file_change(path, before.problem, "the head's, which judges", counts_now=True),
        )
    if own is None and before.config is not None:
        return (_whole_file_change(path, "a configuration", "deleted", counts_now=False),)
    return ()


def _whole_file_change(path: str | None, old: str, new: str, *, counts_now: bool) -> PolicyChange:
    return PolicyChange(
        key=path or CONFIG_FILE,
        old=old,
        new=new,
        effect="changed" if counts_now else "loosened",
        counts="now" if counts_now else "once merged",
    )


def path_inside(root: Path, path: Path) -> str | None:
    """Returns the file's path in the repository, None outside of it. Raises ConfigError for a
    symbolic link on the way to a file inside: the checkout could then choose which file judges
    it."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 -- resolve() would follow links
    for top in (root, root.resolve()):
        if absolute.is_relative_to(top):
            inside = absolute.relative_to(top)
            _check_links(top, inside, path)
            return inside.as_posix()
    real = absolute.parent.resolve() / absolute.name
    if real.is_relative_to(root.resolve()):
        return path_inside(root, real)
    return None


def _check_links(top: Path, inside: Path, path: Path) -> None:
    for each in (inside, *inside.parents):
        if (top / each).is_symlink() and each != Path():
            message = (
                f"{path}: {each} is a symbolic link, which is not followed. Write a file there."
            )
            raise ConfigError(message)
