"""The checks of `doctor`: this machine, the cache, the settings, and the files, waivers and models
that they name."""

import datetime
import os
import platform
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from tunegate import pipeline
from tunegate.artifacts.changes import ModelPath, Revisions, path_of
from tunegate.artifacts.verdicts import WAIVERS_FILE, WarmedModel
from tunegate.config import CacheConfig, Config, ValuesConfig, WatchConfig
from tunegate.decide.error_budget import fewest_samples
from tunegate.errors import ConfigError, EnvironmentUnfitError, ModelError, RevisionError
from tunegate.models import operator_libraries
from tunegate.models.finder import FoundModel
from tunegate.models.graph import SHOWN_OPERATORS
from tunegate.models.inputs.given_values import input_readers
from tunegate.plan.resolve import resolve
from tunegate.ports import Repository
from tunegate.project import Project
from tunegate.redaction import redact
from tunegate.regular_files import opened_inside
from tunegate.review import model_settings
from tunegate.review.gate_rules import stray_waivers
from tunegate.review.input_shapes import ResolvedShapes
from tunegate.review.named_files import described_missing, missing_files, value_problems
from tunegate.review.waivers import parse_waivers
from tunegate.settings import Settings
from tunegate.system.cache.shared_cache import location_of, objects_in_zone, write_problem
from tunegate.system.git.process import git_version
from tunegate.system.machine.cores import default_threads, usable_cores
from tunegate.system.machine.health import HealthCheck, in_section
from tunegate.system.nvidia.cuda_toolkit import cuda_variables
from tunegate.system.nvidia.gpus import visible_gpus
from tunegate.system.nvidia.kernel_clock import why_no_kernel_clock
from tunegate.system.output.directory import opened_output
from tunegate.system.output.temporary_folder import TemporaryFolder
from tunegate.system.strict_yaml import read_yaml
from tunegate.tune.claims import reopen_older
from tunegate.tune.outcomes import warmed_models
from tunegate.upgrades import watched_locks
from tunegate.wiring import opened_tools
from tunegate.wording import plural
from tunegate_cache.stores.store import StoreUnavailableError

# Requirements on a machine, each as a check with its detail.


def machine_checks(config: Config | None = None) -> tuple[HealthCheck, ...]:
    """Returns checks of the versions that every run needs, of the load, and of this configuration's
    devices; without a configuration of all devices."""
    return in_section(_machine_checks(config), "machine")


def _machine_checks(config: Config | None) -> Iterator[HealthCheck]:
    yield HealthCheck("python", ok=True, detail=platform.python_version())
    yield HealthCheck("onnx", ok=True, detail=version("onnx"))
    yield git_check(git_version())
    threads = plural(default_threads(), "thread")
    detail = f"{usable_cores()} usable; a target takes {threads} by default, all but one core"
    yield HealthCheck("cores", ok=True, detail=detail)
    yield load_check(os.getloadavg()[0], machine=os.cpu_count() or 1, usable=usable_cores())
    if config is None:
        yield from _gpu_checks(())
    elif targets := [target.name for target in config.targets if target.kind == "cuda"]:
        yield from _gpu_checks(targets)


_GLOBAL_FILE = (2, 32)
"""The first git that takes the place of its global settings from a variable."""


def git_check(numbers: tuple[int, ...]) -> HealthCheck:
    """Returns the check that git can be told which checkouts of other users to read."""
    version_text = ".".join(map(str, numbers)) or "unknown"
    if numbers >= _GLOBAL_FILE:
        return HealthCheck("git", ok=True, detail=version_text)
    advice = (
        "the Action needs 2.32 to read a checkout that belongs to another user, as in a "
        "container. Update it, or run git config --global --add safe.directory DIRECTORY "
        "before the Action runs"
    )
    return HealthCheck("git", ok=True, detail=f"{version_text}: {advice}", warns=True)


def load_check(load: float, *, machine: int, usable: int) -> HealthCheck:
    """Returns the check that other work leaves a target its threads. `load` is the last minute's
    average; `machine` and `usable` are numbers of cores."""
    free = max(0.0, min(usable, machine - load))
    detail = f"{load:.1f} on {plural(machine, 'core')}, {free:.1f} free"
    if free >= max(0.5, usable - 1):
        return HealthCheck("load", ok=True, detail=detail)
    advice = (
        "each step takes longer, and the gate decides later or not at all. "
        "End what else runs here (top lists it), or take a quieter runner"
    )
    return HealthCheck("load", ok=True, detail=f"{detail}: {advice}", warns=True)


def _gpu_checks(targets: Sequence[str]) -> Iterator[HealthCheck]:
    """Yields the checks of the GPUs here, for targets of these names."""
    gpus = visible_gpus()
    cards = [
        f"{gpu.name} (sm_{gpu.compute_capability.replace('.', '')}), "
        f"driver {gpu.driver}, {gpu.uuid}"
        for gpu in gpus
    ]
    none = f"none: {', '.join(targets)} cannot be tuned or gated here" if targets else "none"
    detail = "; ".join(cards) or none
    yield HealthCheck("cuda devices", ok=True, detail=detail, warns=bool(targets) and not gpus)
    toolkit = cuda_variables()
    compiler = (
        f"{toolkit['TVM_CUDA_COMPILE_MODE']} of {toolkit['CUDA_PATH']}" if toolkit else "none"
    )
    is_needed = bool(gpus) and not toolkit
    advice = ": install tunegate[nvidia], or a CUDA toolkit" if is_needed else ""
    yield HealthCheck("cuda compiler", ok=not is_needed, detail=compiler + advice)
    if gpus:
        reason = why_no_kernel_clock({})
        detail = f"not told: {reason}" if reason else "told by CUPTI"
        yield HealthCheck("times of kernels", ok=True, detail=detail)


# The cache that the configuration names.


def check_cache(config: CacheConfig, *, root: Path, is_compiled: bool = True) -> HealthCheck:
    """Checks the cache by one listing, bounded by the store's own time-outs. If nothing
    `is_compiled`, nothing fills it."""
    if config.mode == "off":
        return _cache("off")
    try:
        where = location_of(config, root=root)
        objects = objects_in_zone(config, root=root)
        problem = write_problem(config, root=root)
    except (StoreUnavailableError, ConfigError) as error:
        return _cache(str(error), ok=False)
    if problem:
        advice = "make it one that may be written, or set cache.mode: ro"
        return _cache(f"{where}: {problem}, so nothing is kept: {advice}", ok=False)
    return _cache(_objects_text(where, objects, config.zone, is_compiled=is_compiled))


def _cache(detail: str, *, ok: bool = True) -> HealthCheck:
    return HealthCheck("cache", ok=ok, detail=detail, section="cache")


def _objects_text(where: str, objects: int, zone: str, *, is_compiled: bool) -> str:
    if not objects:
        fills = "tunegate warm fills it" if is_compiled else "no target compiles anything"
        return f"{where}: nothing in zone {zone} yet; {fills}"
    return f"{where}: {plural(objects, 'object')} in zone {zone}"


# The effective settings with their origin, for `doctor`.

SettingSource = Literal["file", "default", "argument"]


class Setting(msgspec.Struct, frozen=True):
    """`key` is the dotted path in the file; `value` is as the file would write it."""

    key: str
    value: str
    source: SettingSource


def sources(path: Path, of_file: Config, effective: Config) -> tuple[Setting, ...]:
    """Returns the settings: `of_file` is what the file gave, `effective` the same with the
    arguments applied."""
    try:
        content = read_yaml(path.read_text("utf-8"))
    except (OSError, yaml.YAMLError):
        content = None
    before = dict(_leaves(msgspec.to_builtins(of_file)))
    return tuple(
        Setting(key, _text(value), _source(key, value, before, content))
        for key, value in _leaves(msgspec.to_builtins(effective))
    )


def _source(key: str, value: object, before: dict[str, Any], document: object) -> SettingSource:
    if before.get(key) != value:
        return "argument"
    return "file" if _is_written(document, key.split(".")) else "default"


def _is_written(document: object, parts: list[str]) -> bool:
    for part in parts:
        if isinstance(document, list) and part.isdigit():
            if int(part) >= len(document):
                return False
            document = document[int(part)]
        elif isinstance(document, dict) and part in document:
            document = document[part]
        else:
            return False
    return True


def _leaves(value: object, prefix: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        pairs = [(f"{prefix}.{key}" if prefix else str(key), item) for key, item in value.items()]
    elif isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value):
        pairs = [(f"{prefix}.{index}", item) for index, item in enumerate(value)]
    else:
        return [(prefix, value)]
    return [leaf for key, item in pairs for leaf in _leaves(item, key)]


def _text(value: object) -> str:
    return redact(msgspec.json.encode(value).decode(), ())


# Checks the files that the configuration names, and whether the models accept their values.


def files_check(project: Project, models: Sequence[FoundModel]) -> Iterator[HealthCheck]:
    """Yields what a run would reject; it reads only commits. Without a commit nothing that a run
    finds by itself is reported."""
    try:
        head = project.repository.head()
    except RevisionError:
        return
    paths = [entry.path for entry in project.repository.files(head)]
    yield from _watch_check(project.repository, head, project.config.watch)
    missing = [*missing_files(project.config, Revisions(base=None, head=head), project.identity)]
    problems = [described_missing(each, paths) for each in missing]
    files = {
        model.path: project.repository.root / model.path
        for model in models
        if model.inputs is not None
    }
    problems += value_problems(input_readers(project.repository), project.config, files, head)
    yield from (HealthCheck("files", ok=False, detail=problem) for problem in problems)


def custom_operators_check(config: Config, models: Sequence[FoundModel]) -> Iterator[HealthCheck]:
    """Yields where a model's operators of libraries come from, or a warning for each model that a
    run will reject because the configuration names none. The other models are gated all the same.
    """
    try:
        files = operator_libraries.library_files(config.custom_operators)
    except ModelError as error:
        yield HealthCheck(_CUSTOM, ok=True, warns=True, detail=str(error))
        return
    source = ", ".join(file.name for file in files)
    for model in models:
        if not model.custom_operators:
            continue
        names = ", ".join(model.custom_operators[:SHOWN_OPERATORS])
        if source:
            yield HealthCheck(_CUSTOM, ok=True, detail=f"{model.path} uses {names}, from {source}")
            continue
        detail = (
            f"{model.path} uses {names}, of a library that nothing names: once it changes, it is "
            f"an error. Name it: {_how_to_name()}. Or export the model without"
        )
        yield HealthCheck(_CUSTOM, ok=True, warns=True, detail=detail)


_CUSTOM = "custom operators"


def _how_to_name() -> str:
    """Returns the line of the configuration, with the digest of the usual library where it is."""
    digest = next(
        (
            operator_libraries.digest_of_file(file)
            for file in operator_libraries.files_of(operator_libraries.USUAL_LIBRARY)
        ),
        "...",
    )
    return f"custom-operators: [{{library: {operator_libraries.USUAL_LIBRARY}, sha256: {digest}}}]"


def _watch_check(repository: Repository, head: str, watch: WatchConfig) -> Iterator[HealthCheck]:
    """Yields what each run will say of the watched files, or end with."""
    try:
        notes = watched_locks(repository, Revisions(base=head, head=head), watch).notes
    except (ConfigError, EnvironmentUnfitError) as error:
        yield HealthCheck("watch", ok=False, detail=str(error))
        return
    yield from (HealthCheck("watch", ok=True, warns=True, detail=note) for note in notes)


# Whether a model's given cases suffice to prove a build inside its budget.


def budgets_check(config: Config, names: Iterable[ModelPath]) -> Iterator[HealthCheck]:
    """Yields a warning for each model whose budget needs more cases than it has: only float32 can
    ship then. Drawn values never run out."""
    for name in names:
        entry = model_settings.entry_for(config, name)
        if entry is None or entry.accuracy == "same":
            continue
        cases, least = (
            _cases(model_settings.values_for(config, name).values()),
            fewest_samples(entry.accuracy),
        )
        if 0 < cases < least:
            are = plural(cases, "case is", "cases are")
            detail = (
                f"{name}: {are} given, and to show that a build is inside its budget takes "
                f"{plural(least, 'case')}: nothing but float32 can ship"
            )
            yield HealthCheck("accuracy", ok=True, warns=True, detail=detail)


def _cases(values: Iterable[ValuesConfig]) -> int:
    """Returns the number of given cases, 0 if some values are drawn."""
    rules = [*values]
    if any(rule.low is not None for rule in rules):
        return 0
    return max((len(rule.cases) or 1 for rule in rules), default=0)


# Checks that the working tree's waivers are readable and match a model.

_NAME = "waivers"
_MAX_BYTES = 2**20


def waivers_check(
    root: Path, config: Config, models: Sequence[ModelPath] | None, today: datetime.date
) -> Iterator[HealthCheck]:
    """Yields the check of the waivers: nothing without a file, else one line, or one per problem.
    `models` are the names under which models are gated; if None, waivers are not matched."""
    file = opened_inside(root, WAIVERS_FILE)
    if file is None:
        return
    with file:
        body = file.read(_MAX_BYTES + 1)
    if len(body) > _MAX_BYTES:
        yield _no(f"{WAIVERS_FILE}: over 1 MB, which is not read here. Remove what has expired.")
        return
    try:
        waivers = parse_waivers(body.decode(), WAIVERS_FILE, today)
    except UnicodeDecodeError as error:
        yield _no(f"{WAIVERS_FILE}: not UTF-8 ({error}). Save it as text.")
        return
    except ConfigError as error:
        yield from (_no(each) for each in (str(error), *error.others))
        return
    paths = {path_of(waiver.model) for waiver in waivers}
    names = ((path, root / f"{path}{suffix}") for path in paths for suffix in ("", ".dvc"))
    files = {path for path, name in names if os.path.isfile(name)}  # noqa: PTH113 -- too long a name is none
    strays = [] if models is None else [*stray_waivers(waivers, config, models, files)]
    yield from (_no(f"{WAIVERS_FILE}: {stray}") for stray in strays)
    if not strays:
        detail = f"{WAIVERS_FILE}: {plural(len(waivers), 'waiver')}"
        yield HealthCheck(_NAME, ok=True, detail=detail)


def _no(detail: str) -> HealthCheck:
    return HealthCheck(_NAME, ok=False, detail=detail)


# The sizes of each configured model of the working tree, and what is left open.


class ModelSize(msgspec.Struct, frozen=True, kw_only=True):
    """An open dimension of a model, in one of its profiles. `size` is None if it is left open;
    `source` is the configuration key that sets it."""

    model: str
    input: str
    axis: int
    symbol: str
    size: int | None
    source: str


class ShapeReport(msgspec.Struct, frozen=True):
    """Every dynamic dimension, and whether all is well with them and with the models."""

    sizes: tuple[ModelSize, ...]
    checks: tuple[HealthCheck, ...]


def shape_report(models: Sequence[FoundModel], config: Config) -> ShapeReport:
    """Returns the report on these models of the working tree, which the configuration gates."""
    resolutions = {
        name: model_settings.shapes_for(config, name, model.inputs)
        for model in models
        for name in model_settings.profiles_for(config, model.path)
    }
    strays = model_settings.stray_symbols(config, {model.path: model.inputs for model in models})
    problems = [
        f"{name}: {problem}"
        for name, resolution in resolutions.items()
        for problem in resolution.problems
    ]
    return ShapeReport(_sizes(resolutions), _checks([*strays, *problems], models))


def _sizes(resolutions: Mapping[str, ResolvedShapes]) -> tuple[ModelSize, ...]:
    return tuple(
        ModelSize(
            model=name,
            input=dimension.input,
            axis=dimension.axis,
            symbol=dimension.symbol,
            size=dimension.size,
            source=dimension.source,
        )
        for name, resolution in resolutions.items()
        for dimension in resolution.dimensions
    )


def _checks(problems: Sequence[str], models: Sequence[FoundModel]) -> tuple[HealthCheck, ...]:
    broken = tuple(
        HealthCheck("models", ok=False, detail=f"{model.path}: {model.note}.")
        for model in models
        if model.is_broken
    )
    if problems:
        return (*broken, *(HealthCheck("shapes", ok=False, detail=problem) for problem in problems))
    unread = [
        f"{model.path}: {model.note}" for model in models if model.note and not model.is_broken
    ]
    detail = "; ".join(unread) or "every dynamic dimension has a size"
    return (*broken, HealthCheck("shapes", ok=True, warns=bool(unread), detail=detail))


# The models that a configuration gates: their state, and what the cache knows about them.

COMMITTED = "committed"


class GatedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model of the working tree, in one of its profiles. `entry` is the path or glob that gates
    it, `tasks` what the cache knows, `trouble` why it could not be read."""

    model: str
    entry: str
    targets: tuple[str, ...]
    state: str
    tasks: tuple[WarmedModel, ...] = ()
    trouble: str = ""


def gated_models(
    config: Config, models: Sequence[FoundModel], dirty_paths: Collection[str]
) -> tuple[GatedModel, ...]:
    """Returns every model in order; `dirty_paths` are the paths with changes."""
    return tuple(
        GatedModel(
            model=name,
            entry=entry.path,
            targets=model_settings.targets_for(config, model.path),
            state=_state(model, dirty_paths),
            trouble=model.note,
        )
        for model in models
        if (entry := model_settings.entry_for(config, model.path)) is not None
        for name in model_settings.profiles_for(config, model.path)
    )


def with_tasks(
    models: Sequence[GatedModel], counts: Sequence[WarmedModel]
) -> tuple[GatedModel, ...]:
    """Returns the models with what the cache knows about each."""
    return tuple(
        msgspec.structs.replace(
            model, tasks=tuple(each for each in counts if each.model == model.model)
        )
        for model in models
    )


def left_to_do(models: Sequence[GatedModel]) -> Iterator[str]:
    """Yields sentences on what to do next."""
    new = {path_of(model.model) for model in models if model.state != COMMITTED}
    if new:
        yield f"{plural(len(new), 'model')} not committed as here: tunegate sees commits alone"
    tasks_left = sum(task.tasks - task.known for model in models for task in model.tasks)
    if tasks_left:
        tasks = plural(tasks_left, "task is", "tasks are")
        yield f"{tasks} untuned: tunegate warm tunes what matters"


def _state(model: FoundModel, dirty_paths: Collection[str]) -> str:
    if not model.is_committed:
        return "not committed yet"
    return "changed since the commit" if model.path in dirty_paths else COMMITTED


# The number of known tasks of each model; `tunegate warm` tunes the rest.


def known_tasks(project: Project, settings: Settings, most: int) -> Sequence[WarmedModel]:
    """Looks up the tasks of the first `most` committed models, on each target with something to
    tune. One that only an older toolchain has tuned is not known. Nothing is tuned, built or
    written. Raises TunegateError."""
    changes_of_all = project.all_models()
    changes = msgspec.structs.replace(changes_of_all, models=changes_of_all.models[:most])
    with (
        TemporaryFolder() as place,
        opened_output(Path(place) / "out", "doctor") as out,
        opened_tools(settings, project.checkout(), out) as tools,
    ):
        resolution = resolve(pipeline.extract_tasks(tools, changes), tools.index, tools.config)
        tasks = [reopen_older(task, tools.origin) for task in resolution.tasks]
    return warmed_models(tasks, ())
