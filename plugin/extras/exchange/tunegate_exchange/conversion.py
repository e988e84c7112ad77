"""The child that converts schedules: foreign ones to decisions on our own templates, and ours to a
stock database.

A foreign trace is compared, as data, with the templates of our own module. Only our template with
its integers is applied, and it must come out of TVM unchanged.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tvm import tirx
from tvm.s_tir import meta_schedule as ms
from tvm_ffi import structural_map

from tunegate.artifacts.candidates import FLOAT32
from tunegate.compiler.build.functions import ModelFunction
from tunegate.compiler.compile import open_model, reply_or_failure
from tunegate.compiler.layouts.packing import unmark_constants
from tunegate.compiler.schedules.algorithm_variants import DIRECT
from tunegate.compiler.search.space import DesignSpace, trace_signature
from tunegate.compiler.targets import ResolvedTarget, tvm_target
from tunegate.tune.protocol import Schedule
from tunegate_cache.format.records import TuningRecord, WorkloadKey
from tunegate_exchange import requests
from tunegate_exchange.requests import Exported, ForeignSchedule, ImportedSchedule

Request = requests.Request
_MAX_OF_EACH = 4


def handle_request(request: Request) -> requests.Reply:
    """Serves one request. A model that cannot be compiled is a reply, not a crash."""
    return reply_or_failure(lambda: _serve(request), request.model.path, FLOAT32)


def _serve(request: Request) -> requests.Exported | requests.Imported:
    target = tvm_target(request.target)
    functions = open_model(request.model, request.target, Path(request.scratch)).functions
    match request:
        case requests.ExportDatabase(records=records, directory=directory):
            return export_database(functions, records, target.target, Path(directory))
        case requests.ImportSchedules(foreign=foreign):
            return requests.Imported(tuple(import_schedules(functions, foreign, target)))


def import_schedules(
    functions: Sequence[ModelFunction],
    foreign: Sequence[ForeignSchedule],
    target: ResolvedTarget,
) -> Iterator[ImportedSchedule]:
    """Yields, for each workload, the fastest few schedules (by their claims) that fit one of its
    templates exactly."""
    ranked = sorted(enumerate(foreign), key=lambda numbered: numbered[1].median_ms)
    for function in {f.workload.digest: f for f in functions}.values():
        arguments = _arguments(function.workload.module)
        same = [(n, s) for n, s in ranked if s.arguments == arguments]
        if same:
            space = DesignSpace(function.workload, target.target)
            key = WorkloadKey(function.workload.digest, target.key)
            yield from _fitting(space, key, same)


def _fitting(
    space: DesignSpace, key: WorkloadKey, ranked: Sequence[tuple[int, ForeignSchedule]]
) -> Iterator[ImportedSchedule]:
    found: set[Schedule] = set()
    for number, foreign in ranked:
        for schedule in _translate(space, foreign):
            if schedule not in found and space.reproduces(schedule):
                found.add(schedule)
                yield ImportedSchedule(
                    number=number,
                    key=key,
                    template=schedule.template,
                    decisions=schedule.decisions,
                )
        if len(found) >= _MAX_OF_EACH:
            return


def _translate(space: DesignSpace, foreign: ForeignSchedule) -> Iterator[Schedule]:
    """Yields the schedule in each of our templates that fits: two may differ in names alone."""
    theirs = trace_signature(foreign.instructions, space.pure_kinds)
    decisions = theirs.renumber(foreign.decisions)
    for digest, template in space.templates.items():
        if template.signature == theirs.text and template.variant.name == DIRECT:
            yield Schedule(digest, decisions)


def _arguments(module: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    found = ms.arg_info.ArgInfo.from_prim_func(module["main"])
    return tuple((str(a.dtype), tuple(int(n) for n in a.shape)) for a in found)


# Exports records as a stock MetaSchedule database: two JSON files that TVM writes itself, for plain
# TVM to read.

WORKLOADS, RECORDS = "database_workload.json", "database_tuning_record.json"


def export_database(
    functions: Sequence[ModelFunction],
    records: Mapping[str, tuple[TuningRecord, ...]],
    target: Any,
    directory: Path,
) -> Exported:
    """Exports the best record of each function that replays in its direct variant. Where our
    default schedule won, that is the best of the others: plain TVM does not have it."""
    directory.mkdir(parents=True, exist_ok=True)
    database = ms.database.JSONDatabase(str(directory / WORKLOADS), str(directory / RECORDS))
    misfits: list[str] = []
    written = 0
    for function in {f.workload.digest: f for f in functions}.values():
        kept = records.get(function.workload.digest, ())
        tuned = [record for record in kept if record.status == "ok" and record.template]
        if not tuned:
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
    plain = unmark_constants(function.workload)
    module = stock_module(plain.module)
    space = DesignSpace(plain, target)
    for record in records:
        template = space.templates.get(record.template)
        if template is None or template.variant.name != DIRECT:
            continue  # plain TVM has no space for the other variants
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


def stock_module(module: Any) -> Any:
    """Returns the module as plain TVM has it, which looks a schedule up by the whole module: of a
    maximum and a minimum, ours for a CPU has the constant first (own_kernels.py)."""
    changes = [((tirx.Max, tirx.Min), _constant_last)]
    changed = module.clone()
    for variable, function in module.functions.items():
        changed.update_func(variable, structural_map(function, changes))
    return changed


def _constant_last(number: Any) -> Any:
    is_first = isinstance(number.a, tirx.FloatImm)
    return type(number)(number.b, number.a) if is_first else number
