"""`tunegate bisect GOOD..BAD`: finds the commit that made a model slow, by measuring few of them.

The model of each measured commit is built from the cache's records, under the checkout's
configuration, and compared with GOOD's. Nothing is tuned.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tunegate.artifacts import artifact_io
from tunegate.artifacts.changes import ModelPath, ModelVersion, Revisions
from tunegate.artifacts.measurements import Comparison
from tunegate.artifacts.verdicts import Report
from tunegate.cli.handlers.compare_models import (
    AgainstModel,
    Model,
    comparison_config,
    models_report,
    pair_files,
)
from tunegate.cli.handlers.reporting import write_json
from tunegate.cli.parse import suggestion
from tunegate.config import Config
from tunegate.errors import (
    INCONCLUSIVE,
    PASS,
    ConfigError,
    MeasurementError,
    ModelError,
    RevisionError,
)
from tunegate.models.reader import GitModelReader
from tunegate.project import open_project
from tunegate.report.escape import visible
from tunegate.review.model_settings import matching_paths
from tunegate.review.pair_models import pair_models
from tunegate.settings import Settings
from tunegate.system.git.repository import GitRepository
from tunegate.system.output.directory import OutputDirectory, opened_output
from tunegate.system.output.temporary_folder import TemporaryFolder
from tunegate.wording import plural
from tunegate_history.bisection import (
    Bisection,
    MeasuredCommit,
    Search,
    begin_search,
    bisection_lines,
    half_way_percent,
    judge_commit,
    judge_ends,
    next_commit,
    slower_layers,
    suspects,
    with_answer,
    worst_comparison,
)
from tunegate_history.commands import BisectOptions

_LONGEST = 400
_SHORT_ID = 12
_NO_TAIL_PERCENT = 1000.0
_MOST_UNDECIDED = 3
"""A machine that cannot decide so many commits will not decide the others."""
_SHOWN = 3


def run(options: BisectOptions) -> int:
    """Returns 0 if a commit is named or there is nothing to find, and 3 if this machine or the
    median latency cannot tell. Writes bisect.json. Raises ConfigError, RevisionError,
    ModelError."""
    project = open_project(options.settings)
    # The repository's configuration counts in its directories, too.
    settings = msgspec.structs.replace(options.settings, repository=project.repository.root)
    good, bad = _ends(project.repository, options.commits)
    commits = project.repository.commits_between(good, bad)
    model = _BisectedModel(project.repository, good, bad)
    model.choose(project.config, options.model)
    with opened_output(settings.out, "bisect") as out:
        out.forget(since="plan")
        found = _bisect(_Measuring(options, settings, model, out), model, commits)
        artifact_io.write(out.path / "bisect.json", found)
    for line in bisection_lines(found):
        sys.stderr.write(f"{visible(line, _LONGEST)}\n")
    if settings.as_json:
        write_json(found)
    return INCONCLUSIVE if found.finding in ("machine", "not-median") else PASS


def _ends(repository: GitRepository, revision_range: str) -> tuple[str, str]:
    """Returns the commits of a range such as `v1.2.0..HEAD`."""
    good, dots, bad = revision_range.partition("..")
    if not (good and dots) or bad.startswith("."):
        raise ConfigError(
            f'"{revision_range}" is not a range. Write GOOD..BAD, such as v1.2.0..HEAD.'
        )
    return repository.resolve_commit(good, "GOOD"), repository.resolve_commit(bad or "HEAD", "BAD")


class _BisectedModel:
    """One model at the commits between two ends, whatever its name there."""

    def __init__(self, repository: GitRepository, good: str, bad: str) -> None:
        self._repository, self._reader = repository, GitModelReader(repository)
        self.good, self.bad = good, bad
        self._before, self._after = self._reader.models(good), self._reader.models(bad)
        self._pairs = pair_models(self._reader, self._before, self._after, {*self._before}, bad)
        self.path = ""

    def choose(self, config: Config, path: ModelPath) -> None:
        """Takes the model of this path at the slow end, or else the only configured model that
        changed. Raises ConfigError if that is not exactly one."""
        self.path = path.removeprefix("./") or self._only_change(config)
        if self.path not in self._pairs.before:
            where = "the slow" if self.path in self._after else "the fast"
            is_there = self.path in self._after or self.path in self._before
            told = f"only {where} end has it" if is_there else "neither end has it"
            meant = suggestion(self.path, self._pairs.before)
            raise ConfigError(
                f"{self.path}: {told}. Name a model of both ends with --model.{meant}"
            )

    def at(self, commit: str) -> ModelVersion:
        """Returns the model at a commit. Raises ModelError if it is not there."""
        first, there = self._pairs.before[self.path], self._reader.models(commit)
        pairs = pair_models(self._reader, {first.path: first}, there, {first.path}, commit)
        paths = [path for path, before in pairs.before.items() if before.path == first.path]
        if not paths:
            raise ModelError(f"{self.path} is not in {commit[:_SHORT_ID]}")
        return there[self.path if self.path in paths else paths[0]]

    def content(self, commit: str) -> tuple[str, ...]:
        """Returns the digests of the model at a commit and of its data files. Raises ModelError."""
        return self._content(self.at(commit))

    def export(self, commit: str, into: Path) -> Path:
        """Writes the model at a commit to files, and returns the first. Raises ModelError."""
        return self._repository.export_model(self.at(commit), into)

    def subject(self, commit: str) -> str:
        """Returns the first line of the commit's message."""
        return self._repository.subject(commit)

    def _content(self, version: ModelVersion) -> tuple[str, ...]:
        read, _ = self._reader.with_data_files(version)
        return read.contents

    def _only_change(self, config: Config) -> ModelPath:
        changed = [
            path
            for path in matching_paths(config, self._after)
            if path in self._pairs.before
            and self._content(self._pairs.before[path]) != self._content(self._after[path])
        ]
        if not changed:
            message = (
                "no configured model differs between both ends, so no commit made one slower. "
                "Compare packages and machines instead."
            )
            raise ConfigError(message)
        if len(changed) > 1:
            shown = ", ".join(changed[:_SHOWN])
            message = f"{plural(len(changed), 'model')} changed: {shown}. Name one with --model."
            raise ConfigError(message)
        return changed[0]


class _Measured(NamedTuple):
    """The comparison of a commit with the fast end; None if there is none. `reason` is why, or why
    the gate fails it."""

    comparison: Comparison | None
    reason: str = ""


class _Measuring:
    """Compares commits with the fast end, as the gate compares a head with its base."""

    def __init__(
        self,
        options: BisectOptions,
        settings: Settings,
        model: _BisectedModel,
        out: OutputDirectory,
    ) -> None:
        self._settings, self._shapes = settings, dict(options.shapes)
        self._model, self._out = model, out
        self._target, self._margin_percent = options.target, 0.0
        self.whole_percent, self.count = 0.0, 0
        config = self._config(model.path)
        self.margin_percent, self.target = config.gate.margin_percent, config.targets[0].name

    def narrow(self, target: str, whole_percent: float) -> None:
        """Measures only on this target from now on, with a margin that tells fast from slow."""
        self._target, self.whole_percent = target, whole_percent
        self._margin_percent = half_way_percent(whole_percent)

    def compare(self, commit: str) -> _Measured:
        """Returns the comparison of the target that slowed down most. Raises ConfigError."""
        try:
            with TemporaryFolder() as place:
                report = self._report(commit, Path(place))
        except (ModelError, RevisionError, MeasurementError) as error:
            return _Measured(None, str(error))
        self.count += bool(report.comparisons)
        worst = worst_comparison(report, self.margin_percent)
        if worst is not None and worst[0].stopped != "error":
            return _Measured(*worst)
        findings = report.verdict.findings
        return _Measured(None, findings[0].reason if findings else "the same model")

    def _report(self, commit: str, place: Path) -> Report:
        base = self._model.export(self._model.good, place / "good")
        head = self._model.export(commit, place / "commit")
        both = AgainstModel(Model(base), Model(head))
        pair = pair_files(both, Revisions(base=self._model.good, head=commit, reason="bisect"))
        config = self._config(head.name)
        return models_report(self._settings, config, both, pair, self._out)

    def _config(self, name: str) -> Config:
        """Returns the checkout's configuration for the model under the name of a file."""
        place = self._settings.repository / self._model.path
        config = comparison_config(self._settings, name, self._shapes, [place])
        gate = config.gate
        if self._margin_percent:
            # The median alone tells fast from slow, so nothing else is worth a launch.
            gate = msgspec.structs.replace(
                gate,
                margin_percent=self._margin_percent,
                tail_margin_percent=_NO_TAIL_PERCENT,
                rare_launches=0.0,
                energy_margin_percent=None,
                load_margin_percent=None,
                layers_margin_percent=None,
            )
        targets = [each for each in config.targets if self._target in ("", each.name)]
        if not targets:
            names = ", ".join(each.name for each in config.targets)
            raise ConfigError(f"--target {self._target}: the configuration has {names}.")
        return msgspec.structs.replace(config, gate=gate, targets=tuple(targets))


def _bisect(measuring: _Measuring, model: _BisectedModel, commits: Sequence[str]) -> Bisection:
    """Measures both ends, and the commits between them if the ends differ."""
    if model.content(model.good) == model.content(model.bad):
        return Bisection(
            model=model.path,
            target=measuring.target,
            good=model.good,
            bad=model.bad,
            finding="method",
            reason="both ends have the same model, byte by byte",
            change_percent=None,
            commits=len(commits),
            measurements=0,
        )
    # Both ends first: only a difference that is real can be looked for.
    ends, why = measuring.compare(model.bad)
    if ends is None:
        raise MeasurementError(f"the ends cannot be compared: {why}")
    finding, reason = judge_ends(ends, measuring.margin_percent, why)
    begun = Bisection(
        model=model.path,
        target=ends.cell.target,
        good=model.good,
        bad=model.bad,
        finding=finding,
        reason=reason,
        change_percent=ends.change_percent,
        commits=len(commits),
        measurements=measuring.count,
    )
    if finding != "real" or ends.change_percent is None:
        return begun
    # Then between them, on the one target, at half of what was lost.
    measuring.narrow(ends.cell.target, ends.change_percent.center)
    search, steps, (fast, slow) = _narrow(measuring, model, begin_search(tuple(commits)), ends)
    return msgspec.structs.replace(
        begun,
        suspects=suspects(search),
        subjects=tuple(map(model.subject, suspects(search))),
        layers=slower_layers(fast, slow),
        measurements=measuring.count,
        steps=steps,
    )


class _Known(NamedTuple):
    """The answer for a model's content, and its comparison with the fast end, if there is one."""

    step: MeasuredCommit
    comparison: Comparison | None


def _narrow(
    measuring: _Measuring, model: _BisectedModel, search: Search, ends: Comparison
) -> tuple[Search, tuple[MeasuredCommit, ...], tuple[Comparison | None, Comparison]]:
    """Returns the finished search, its commits in order, and the comparisons of the newest fast
    commit and the oldest slow one. Equal models are measured once."""
    known = {
        model.content(model.good): _Known(MeasuredCommit(commit=model.good, answer="fast"), None),
        model.content(model.bad): _Known(MeasuredCommit(commit=model.bad, answer="slow"), ends),
    }
    steps, undecided = list[MeasuredCommit](), 0
    fast, slow = None, ends
    while undecided < _MOST_UNDECIDED and (index := next_commit(search)) is not None:
        step, comparison = _judge(measuring, model, search.commits[index], known)
        undecided += step.answer == "skipped" and step.is_measured
        if step.answer == "slow":
            slow = comparison or slow
        elif step.answer == "fast":
            fast = comparison
        steps.append(step)
        search = with_answer(search, index, step.answer)
    return search, tuple(steps), (fast, slow)


def _judge(
    measuring: _Measuring,
    model: _BisectedModel,
    commit: str,
    known: dict[tuple[str, ...], _Known],
) -> _Known:
    """Returns the answer for a commit."""
    named = MeasuredCommit(commit=commit, subject=model.subject(commit), answer="skipped")
    try:
        content = model.content(commit)
    except (ModelError, RevisionError) as error:
        return _Known(msgspec.structs.replace(named, reason=str(error)), None)
    if content in known:
        same, comparison = known[content]
        told = f"the model of {same.commit[:_SHORT_ID]}"
        step = msgspec.structs.replace(named, answer=same.answer, reason=told)
        return _Known(step, comparison)
    comparison, reason = measuring.compare(commit)
    if comparison is None:
        step = msgspec.structs.replace(named, reason=reason)
    else:
        answer, why = judge_commit(comparison, measuring.whole_percent)
        change = comparison.change_percent
        step = msgspec.structs.replace(
            named, answer=answer, reason=why, is_measured=True, change_percent=change
        )
    known[content] = _Known(step, comparison)
    return known[content]
