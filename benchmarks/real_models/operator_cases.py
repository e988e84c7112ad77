"""The operator cases of the installed `onnx` package, with their own data: what ONNX Runtime runs,
what is built with default schedules, and whether the numbers agree.

    python -m benchmarks.real_models.operator_cases [--count 300] [--seed 0] [--only TEXT ...]
        [--gate] [--json FILE]

`--count 0` takes all of them. With `--gate` nothing is compiled: ONNX Runtime builds each case
twice with its own data, given by files, and both are measured. Each case has a process and
`--limit` seconds of the processor, so a crash of the compiler is counted, not suffered. With
`--json` each outcome is kept there at once, and what is there is not tried again: so a long run can
be had in portions.
Prints a table of counts by what happened, then what was refused, by the reason. Prints the table
of docs/benchmarks.
"""

from __future__ import annotations

import math
import multiprocessing
import pickle
import random
import re
import resource
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.operator_case import Outcome, try_case
from benchmarks.kit.tables import heading, row
from benchmarks.real_models.gated_case import gate_case

_WAITED = 10
_Stages = Mapping[str, str]
_COMPILED: _Stages = {
    "reference": "ONNX Runtime does not run it",
    "import and build": "refused",
    "run": "built, does not run",
    "compare": "other numbers",
    "agreed": "built and agrees",
    "crash": "crash of the child",
    "limit": "ran past its limit",
}
_GATED: _Stages = {
    "reference": "ONNX Runtime does not run it",
    "values": "its data cannot be given",
    "build": "not built",
    "compare": "other numbers",
    "measure": "not measured",
    "red": "equal builds, and red",
    "gated": "gated with its own data",
    "crash": "crash of the child",
    "limit": "ran past its limit",
}


def main() -> None:
    options = command_line(
        __doc__, count=300, seed=0, only=[""], limit=120.0, json=str, gate=False, reasons=40
    )
    cases = drawn(options.count, options.seed, options.only)
    context = multiprocessing.get_context("forkserver")
    module = "real_models.gated_case" if options.gate else "kit.operator_case"
    context.set_forkserver_preload([f"benchmarks.{module}"])
    kept = Path(options.json) if options.json else None
    known = kept_outcomes(kept)
    with scratch_folder() as scratch:
        for number, case in enumerate(cases):
            if case.name not in known:
                place = scratch / str(number)
                known[case.name] = outcome_of(case, place, context, options)
                keep(known, kept)
            print(f"\r{number + 1} of {len(cases)} {case.name[:60]:60}", end="", flush=True)
    print()
    found = [known[case.name] for case in cases]
    show(found, _GATED if options.gate else _COMPILED, options.reasons)


def kept_outcomes(file: Path | None) -> dict[str, Outcome]:
    if file is None or not file.exists():
        return {}
    return {each.name: each for each in msgspec.json.decode(file.read_bytes(), type=list[Outcome])}


def keep(known: Mapping[str, Outcome], file: Path | None) -> None:
    if file is not None:
        file.write_bytes(msgspec.json.format(msgspec.json.encode([*known.values()])))


def drawn(count: int, seed: int, only: Sequence[str]) -> list[Any]:
    """The cases whose names have one of these texts, or so many of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        every = sorted(collect_testcases(None), key=lambda case: str(case.name))
    wanted = [case for case in every if any(text in case.name for text in only)]
    chosen = random.Random(seed).sample(wanted, count) if 0 < count < len(wanted) else wanted
    return sorted(chosen, key=lambda case: str(case.name))


def outcome_of(case: Any, folder: Path, context: Any, options: Any) -> Outcome:
    folder.mkdir()
    onnx.save(case.model, folder / "model.onnx")
    names = [value.name for value in case.model.graph.input]
    inputs, _ = case.data_sets[0]
    feed = {name: _plain(value) for name, value in zip(names, inputs, strict=False)}
    (folder / "case.pickle").write_bytes(pickle.dumps((case.name, feed)))
    target = gate_case if options.gate else try_case
    return outcome_in_child(target, folder, context, options.limit)


def outcome_in_child(
    target: Callable[[Path], None], folder: Path, context: Any, limit: float
) -> Outcome:
    """Runs what leaves an outcome in a folder; a crash and a time-out are outcomes, too. The limit
    is in seconds of the processor; a child that waits is ended after ten times that."""
    child = context.Process(target=_limited, args=(target, folder, limit))
    child.start()
    child.join(_WAITED * limit)
    if child.is_alive():
        child.kill()
        child.join()
        return _ended(folder, "limit", f"{_WAITED * limit:g} s by the clock")
    if child.exitcode == -signal.SIGXCPU:
        return _ended(folder, "limit", f"{limit:g} s of the processor")
    if child.exitcode:
        code = child.exitcode
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return _ended(folder, "crash", how)
    return msgspec.json.decode((folder / "outcome.json").read_bytes(), type=Outcome)


def _limited(target: Callable[[Path], None], folder: Path, limit: float) -> None:
    seconds = math.ceil(limit)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    target(folder)


def _plain(value: Any) -> Any:
    """Some cases have a scalar of NumPy's, which ONNX Runtime takes as an array alone."""
    return np.asarray(value) if isinstance(value, np.generic) else value


def _ended(folder: Path, how: str, reason: str) -> Outcome:
    outcome = msgspec.json.decode((folder / "outcome.json").read_bytes(), type=Outcome)
    outcome.reason, outcome.stage = f"{reason} in {outcome.stage}", how
    return outcome


def show(outcomes: Sequence[Outcome], stages: _Stages, most: int) -> None:
    heading("what happened | cases | of these with static shapes")
    by_stage = Counter(outcome.stage for outcome in outcomes)
    static = Counter(outcome.stage for outcome in outcomes if outcome.is_static)
    for stage, told in stages.items():
        row(told, by_stage[stage], static[stage])
    row("all", len(outcomes), static.total())
    print()
    heading("why | cases | for instance", (0, 2))
    failed = [o for o in outcomes if o.stage not in {"reference", "agreed", "gated"}]
    for reason, names in sorted(_by_reason(failed), key=lambda pair: -len(pair[1]))[:most]:
        row(reason, len(names), ", ".join(names[:3]))


def _by_reason(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, list[str]]]:
    """The names of the cases by what was said of them, without names and numbers."""
    kinds: dict[str, list[str]] = {}
    for outcome in outcomes:
        text = re.sub(r"^model.onnx: |\(the node [^)]*\)|\d+", "", outcome.reason)[:120]
        kinds.setdefault(text, []).append(outcome.name)
    yield from kinds.items()


if __name__ == "__main__":
    main()
