"""Records as a stock MetaSchedule database: two JSON files that TVM writes itself, for plain TVM to
read. Runs in a child."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tvm.s_tir import meta_schedule as ms

from tunegate.edges.metaschedule.functions import ModelFunction
from tunegate.edges.metaschedule.passes.prepacking import unmarked
from tunegate.edges.metaschedule.space import DesignSpace
from tunegate.edges.metaschedule.variants.algorithm_variants import DIRECT
from tunegate.engine.compiler_protocol import Exported
from tunegate.engine.protocol import Schedule
from tunegate_cache.format.records import TuningRecord

WORKLOADS, RECORDS = "database_workload.json", "database_tuning_record.json"


def export_database(
    functions: Sequence[ModelFunction],
    records: Mapping[str, tuple[TuningRecord, ...]],
    target: Any,
    directory: Path,
) -> Exported:
    """The best record of each function that replays in its direct form. Functions whose best is the
    default schedule need none."""
    directory.mkdir(parents=True, exist_ok=True)
    database = ms.database.JSONDatabase(str(directory / WORKLOADS), str(directory / RECORDS))
    misfits: list[str] = []
    written = 0
    for function in {f.workload.digest: f for f in functions}.values():
        tuned = [r for r in records.get(function.workload.digest, ()) if r.status == "ok"]
        if not tuned or not tuned[0].template:
            continue
        if _export(database, function, tuned, target):
            written += 1
        else:
            misfits.append(function.label)
    return Exported(written=written, misfits=tuple(misfits))


def _export(
    database: Any, function: ModelFunction, records: Sequence[TuningRecord], target: Any
) -> bool:
    # Plain TVM does not know which arguments are constants; the sketches are the same without.
    plain = unmarked(function.workload)
    module = plain.module
    space = DesignSpace(plain, target)
    for record in records:
        template = space.templates.get(record.template)
        if template is None or template.variant.name != DIRECT:
            continue  # plain TVM has no space for the other forms
        schedule = space.replay(Schedule(record.template, record.decisions))
        if schedule is not None:
            stock = ms.database.TuningRecord(
                schedule.trace,
                database.commit_workload(module),
                [nanoseconds / 1e9 for nanoseconds in record.run_nanoseconds],
                target,
                ms.arg_info.ArgInfo.from_prim_func(module["main"]),
            )
            database.commit_tuning_record(stock)
            return True
    return False
