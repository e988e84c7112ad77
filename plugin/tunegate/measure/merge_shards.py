"""Merges the measurements of several runners into one run. Pure.

Each planned shard counts once. A shard that is lost, duplicated or from another plan does not
count: its models are named with what to run again, and none of them passes.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from tunegate.artifacts import measurements
from tunegate.artifacts.builds import Cell
from tunegate.artifacts.plans import MeasuringShard
from tunegate.errors import ArtifactError
from tunegate_cache.format.records import DeviceFingerprint, WorkloadKey


class HandedShard(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement file as it came. `shard` is the number in its name, None without one. Without
    `content`, `problem` says why the file cannot be read."""

    name: str
    shard: int | None
    content: measurements.ShardMeasurements | None = None
    problem: str = ""


class MergedShards(msgspec.Struct, frozen=True, kw_only=True):
    """`run` is None if no shard counts. Of the tasks, only an older toolchain has tuned the
    `unasked`."""

    run: measurements.MeasurementRun | None
    unmeasured: tuple[measurements.UnmeasuredShard, ...]
    unasked: frozenset[tuple[WorkloadKey, str]] = frozenset()


def merge_shards(
    shards: Sequence[MeasuringShard],
    files: Sequence[HandedShard],
    bound: measurements.ShardBinding,
) -> MergedShards:
    """Returns the merged run; the order of the files does not matter. Raises ArtifactError for a
    file of no planned shard, because no model could carry its problem."""
    _refuse_foreign(shards, files)
    pairs: list[tuple[MeasuringShard, measurements.ShardMeasurements]] = []
    losses: list[measurements.UnmeasuredShard] = []
    for shard in shards:
        result = _accept_shard(shard, [each for each in files if each.shard == shard.index], bound)
        if isinstance(result, measurements.ShardMeasurements):
            pairs.append((shard, result))
        else:
            losses.append(result)
    problems = dict(_mixed_targets(pairs))
    for shard, _ in pairs:
        if shard.target in problems:
            losses.append(_unmeasured_shard(shard, problems[shard.target], is_unfit=True))
    runs = [result for shard, result in pairs if shard.target not in problems]
    return MergedShards(
        run=_merge_runs(runs) if runs else None,
        unmeasured=tuple(sorted(losses, key=lambda each: each.shard)),
        unasked=frozenset((key, each.target) for each in runs for key in each.unasked),
    )


def _refuse_foreign(shards: Sequence[MeasuringShard], files: Sequence[HandedShard]) -> None:
    indices = {shard.index for shard in shards}
    foreign = sorted(each.name for each in files if each.shard not in indices)
    if foreign:
        message = (
            f"{foreign[0]}: not of a measuring shard of plan.json. Remove it, or run tunegate plan "
            "again."
        )
        raise ArtifactError(message)


def _accept_shard(
    shard: MeasuringShard, files: Sequence[HandedShard], bound: measurements.ShardBinding
) -> measurements.ShardMeasurements | measurements.UnmeasuredShard:
    if not files:
        reason = f"no measurements-{shard.index}.json came, so its runner was lost or stopped"
        return _unmeasured_shard(shard, reason, is_unfit=True)
    if len(files) > 1:
        names = ", ".join(sorted(each.name for each in files))
        return _unmeasured_shard(shard, f"its measurements came {len(files)} times ({names})")
    (only,) = files
    if only.content is None:
        return _unmeasured_shard(shard, only.problem.rstrip("."))
    problem = next(_flaws(shard, only.content, bound), None)
    return only.content if problem is None else _unmeasured_shard(shard, f"{only.name}: {problem}")


def _flaws(
    shard: MeasuringShard,
    results: measurements.ShardMeasurements,
    bound: measurements.ShardBinding,
) -> Iterator[str]:
    """Yields the reasons why the measurements are not those of this shard, plan and verdict."""
    if (results.shard, results.target) != (shard.index, shard.target):
        yield f"holds shard {results.shard} on {results.target}"
    if results.bound.plan != bound.plan:
        yield "of another plan"
    if results.bound.rules != bound.rules:
        yield "measured for other rules (margin, gate or objectives)"
    if results.bound.outcomes != bound.outcomes:
        yield "built from other tuning outcomes"
    cells = Counter(Cell(model=model, target=shard.target) for model in shard.models)
    for what, those in (
        ("measurements", results.run.cells),
        ("builds", results.run.builds),
    ):
        if Counter(each.cell for each in those) != cells:
            yield f"its {what} are not those of the models of the shard"


def _mixed_targets(
    pairs: Sequence[tuple[MeasuringShard, measurements.ShardMeasurements]],
) -> Iterator[tuple[str, str]]:
    """Returns the targets measured on several kinds of machine, with a message for each."""
    for target in dict.fromkeys(shard.target for shard, _ in pairs):
        kinds: dict[str, list[int]] = {}
        for shard, results in pairs:
            if shard.target == target:
                kinds.setdefault(_kind(results.run.device), []).append(shard.index)
        if len(kinds) > 1:
            kinds_text = "; ".join(
                f"{', '.join(map(str, shards))} on {kind}" for kind, shards in kinds.items()
            )
            yield (
                target,
                f"target {target} was measured on machines of different kinds: {kinds_text}",
            )


def _kind(device: DeviceFingerprint) -> str:
    return f"{device.name} ({device.kind}, {device.units} units)"


def _unmeasured_shard(
    shard: MeasuringShard, problem: str, *, is_unfit: bool = False
) -> measurements.UnmeasuredShard:
    return measurements.UnmeasuredShard(
        shard=shard.index,
        target=shard.target,
        models=shard.models,
        status="invalid-env" if is_unfit else "error",
        problem=problem,
    )


def _merge_runs(shards: Sequence[measurements.ShardMeasurements]) -> measurements.MeasurementRun:
    runs = [shard.run for shard in shards]
    seeds = {run.seed for run in runs}
    builds = sorted((pair for run in runs for pair in run.builds), key=lambda b: _place(b.cell))
    cells = sorted((cell for run in runs for cell in run.cells), key=lambda c: _place(c.cell))
    return measurements.MeasurementRun(
        device=runs[0].device,
        builds=tuple(builds),
        cells=tuple(cells),
        environment=_environment(runs),
        seed=seeds.pop() if len(seeds) == 1 else "",
        shards=tuple(
            measurements.MeasuredShard(
                shard=shard.shard,
                target=shard.target,
                machine=shard.machine,
                device=shard.run.device,
                seed=shard.run.seed,
            )
            for shard in shards
        ),
    )


def _environment(runs: Sequence[measurements.MeasurementRun]) -> dict[str, str]:
    """Returns the environment. Facts that differ between the machines are listed."""
    names = sorted({name for run in runs for name in run.environment})
    return {
        name: "; ".join(
            dict.fromkeys(run.environment[name] for run in runs if name in run.environment)
        )
        for name in names
    }


def _place(cell: Cell) -> tuple[str, str]:
    return cell.model, cell.target
