"""The subject of a study: its axes with their levels here, and the possible cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeGuard

import msgspec

from tunegate.artifacts.candidates import CandidateBuild
from tunegate.config import AUTO, TargetConfig
from tunegate.errors import ConfigError
from tunegate.review.model_settings import values_of
from tunegate.runtimes.registry import Installed, offer_runtimes, tunes
from tunegate.runtimes.runtime import Runtime
from tunegate.system.machine.cores import default_threads
from tunegate.wording import did_you_mean
from tunegate_study.design.cost import cells_paid, estimated_seconds
from tunegate_study.design.fraction import cells_needed, chosen_cells, untold_pairs
from tunegate_study.design.measured import ALGORITHM, MODEL, PRECISION, RUNTIME, TARGET, VARIANT
from tunegate_study.design.possible import Offers, Space, precision_level, space_of
from tunegate_study.design.study_config import StudiedModel, StudyConfig
from tunegate_study.studies import Axis, CellSetting, StudyDesign
from tunegate_study.study_file import studied_models


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """The cells of a study. `repeats` are settings that one of them stands for; `compilers` are the
    runtimes that tune."""

    models: Mapping[str, StudiedModel]
    targets: Mapping[str, TargetConfig]
    offers: Offers
    design: StudyDesign
    cells: tuple[CellSetting, ...]
    repeats: tuple[tuple[CellSetting, CellSetting], ...]
    compilers: frozenset[str]


def choose_cells(config: StudyConfig, where: str, installed: Installed) -> Chosen:
    """Returns the cells. Raises ConfigError for levels that nothing here has, and for a study
    beyond its budget."""
    models = {model.name: model for model in studied_models(config)}
    targets = {target.name: target for target in config.targets}
    _require_files(models.values(), where)
    # The axes, and what this machine offers for their levels.
    axes = _axes(config, models, installed)
    _require_processors(axes, targets, where)
    candidates = offer_runtimes(config.targets, installed).candidates
    offers = Offers(
        candidates=candidates,
        variants={name: frozenset(model.files) for name, model in models.items()},
        calibrated=frozenset(name for name, model in models.items() if values_of(model.inputs)),
        lacks=_lacks(installed, [each for every in candidates.values() for each in every]),
    )
    _require_runtimes(axes, installed, config.targets, where)
    _require_precisions(axes, offers, where)
    # All possible cells, and those of them that the budget allows.
    space = space_of(axes, offers)
    _require_cells(axes, space, where)
    compilers = frozenset(
        each.runtime for every in candidates.values() for each in every if each.is_tuned
    )
    cells = chosen_cells(
        axes, space.possible, _most(config, axes, space, compilers, where), seed=config.seed
    )
    design = StudyDesign(
        kind="full" if len(cells) == len(space.possible) else "fraction",
        axes=axes,
        possible=len(space.possible),
        chosen=len(cells),
        left_out=space.left_out,
        untold=untold_pairs(axes, cells),
    )
    return Chosen(
        models=models,
        targets=targets,
        offers=offers,
        design=design,
        cells=cells,
        repeats=space.repeats,
        compilers=compilers,
    )


def _axes(
    config: StudyConfig, models: Mapping[str, StudiedModel], installed: Installed
) -> tuple[Axis, ...]:
    given = config.axes
    runtimes = given.runtime or tuple(
        each.name for each in installed.runtimes if not _unfit(each, config.targets)
    )
    levels: dict[str, Sequence[object]] = {
        MODEL: tuple(models),
        VARIANT: given.variant,
        RUNTIME: runtimes,
        "precision": given.precision,
        "layout": given.layout,
        "algorithm": given.algorithm,
        "tuning": given.tuning,
        "threads": given.threads or (default_threads(),),
        TARGET: given.target or (config.targets[0].name,),
    }
    return tuple(Axis(name=name, levels=tuple(map(str, values))) for name, values in levels.items())


class _LackingRuntime(Runtime, Protocol):
    """A runtime with variants that some processors lack instructions for."""

    def lacking(self, settings: Mapping[str, str]) -> str:
        """Returns what this machine lacks for these settings, and what it has; '' if nothing is
        missing."""
        ...


def _knows_lacks(runtime: Runtime) -> TypeGuard[_LackingRuntime]:
    return callable(getattr(runtime, "lacking", None))


def _lacks(
    installed: Installed, candidates: Sequence[CandidateBuild]
) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for runtime in filter(_knows_lacks, installed.runtimes):
        for candidate in candidates:
            is_its = candidate.runtime == runtime.name
            reason = runtime.lacking(candidate.settings) if is_its else ""
            if reason:
                found[runtime.name, precision_level(candidate)] = reason
    return found


def _require_files(models: Iterable[StudiedModel], where: str) -> None:
    for model in models:
        for file in model.files.values():
            if not Path(file).is_file():
                raise ConfigError(f"{where}: models: {file}: no such file. Correct the path.")


def _require_processors(
    axes: Sequence[Axis], targets: Mapping[str, TargetConfig], where: str
) -> None:
    """Raises ConfigError for a form of convolutions that is requested on a GPU."""
    levels = {axis.name: axis.levels for axis in axes}
    gpus = [name for name in levels[TARGET] if targets[name].kind == "cuda"]
    if gpus and levels[ALGORITHM] != (AUTO,):
        message = f"{where}: axes.algorithm: {gpus[0]} is a GPU, where convolutions have one form."
        raise ConfigError(f"{message} Remove the axis.")


def _require_runtimes(
    axes: Sequence[Axis], installed: Installed, targets: Sequence[TargetConfig], where: str
) -> None:
    """Raises ConfigError for a runtime that is not installed, or runs on no target."""
    known = {runtime.name: runtime for runtime in installed.runtimes}
    for name in next(axis.levels for axis in axes if axis.name == RUNTIME):
        if name not in known:
            hint = _hint(name, [*known], "Installed")
            raise ConfigError(f"{where}: axes.runtime: {name} is not installed. {hint}")
        unfit = _unfit(known[name], targets)
        if unfit:
            raise ConfigError(f"{where}: axes.runtime: {name} {unfit}.")


def _unfit(runtime: Runtime, targets: Sequence[TargetConfig]) -> str:
    """Returns why a runtime runs on none of these targets, or lacks its compiler; '' if it runs."""
    reasons = [runtime.unsupported(target) for target in targets]
    if reasons and all(reasons):
        return reasons[0]
    if tunes(runtime):
        try:
            runtime.require(targets, "plan", "")
        except ConfigError as error:
            return f"cannot be used: {error}".removesuffix(".")
    return ""


def _require_precisions(axes: Sequence[Axis], offers: Offers, where: str) -> None:
    """Raises ConfigError for a precision that no runtime of the study has on this machine, with
    what each lacks."""
    levels = {axis.name: axis.levels for axis in axes}
    every = [each for found in offers.candidates.values() for each in found]
    own = [each for each in every if each.runtime in levels[RUNTIME]]
    for precision in levels[PRECISION]:
        problem = _precision_problem(precision, own, offers)
        if problem:
            raise ConfigError(f"{where}: axes.precision: {problem}")


def _precision_problem(precision: str, own: Sequence[CandidateBuild], offers: Offers) -> str:
    """Returns why none of these candidates computes in it, '' if one does."""
    having = sorted({each.runtime for each in own if precision_level(each) == precision})
    if not having:
        hint = _hint(precision, sorted({precision_level(each) for each in own}), "They offer")
        return f"no runtime of the study offers {precision}. {hint}"
    lacking = [offers.lacks.get((name, precision), "") for name in having]
    if not all(lacking):
        return ""
    told = zip(having, lacking, strict=True)
    said = "; ".join(f"{name}: {reason}" for name, reason in told)
    return f"{precision} is not for this machine ({said})."


def _hint(word: str, words: Sequence[str], otherwise: str) -> str:
    return did_you_mean(word, words, f"{otherwise}: {', '.join(words)}.")


def _require_cells(axes: Sequence[Axis], space: Space, where: str) -> None:
    if len(space.possible) < 2:  # noqa: PLR2004 -- one cell has nothing beside it
        reasons = "; ".join(each.reason for each in space.left_out[:2])
        told = f" ({reasons})" if reasons else ""
        message = (
            f"{where}: {len(space.possible)} of {_settings(axes)} settings can be measured{told}. "
            f"Give an axis a second level."
        )
        raise ConfigError(message)


def _settings(axes: Sequence[Axis]) -> int:
    count = 1
    for axis in axes:
        count *= len(axis.levels)
    return count


def _most(
    config: StudyConfig,
    axes: Sequence[Axis],
    space: Space,
    compilers: frozenset[str],
    where: str,
) -> int:
    """Returns the most cells. Raises ConfigError if they are too few for the main effects, or more
    than the minutes allow."""
    minutes, possible = config.budget.minutes, space.possible
    paid = cells_paid(possible, compilers, config.rounds, 60 * minutes)
    needed = cells_needed(axes, possible)
    wanted = min(len(possible), config.budget.cells or len(possible))
    a_cell = estimated_seconds(possible, compilers, config.rounds) / len(possible) / 60
    if config.budget.cells is not None and wanted > paid:
        message = (
            f"{where}: budget: {wanted} cells take about {a_cell * wanted:.0f} minutes, and "
            f"{minutes:g} minutes pay {paid}. Raise minutes, or write cells: {max(paid, needed)}."
        )
        raise ConfigError(message)
    if min(wanted, paid) < needed:
        key, to = ("cells", needed) if wanted < needed else ("minutes", math.ceil(a_cell * needed))
        message = (
            f"{where}: budget: {min(wanted, paid)} cells are paid, and the main effects of "
            f"{len(possible)} possible ones need {needed}. Raise {key} to {to}, or remove levels."
        )
        raise ConfigError(message)
    return min(wanted, paid)
