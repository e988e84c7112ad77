"""Which runtime each model ships with, and what that saved, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tunegate.artifacts.builds import Build, Runtime
from tunegate.artifacts.verdicts import Report
from tunegate.render.units import milliseconds

RUNTIMES: dict[Runtime, str] = {"tvm": "TVM", "onnxruntime": "ONNX Runtime"}


def shipped(report: Report, code: Callable[[str], str]) -> Iterator[str]:
    """One sentence for each model whose head had a choice; `code` marks a model's name."""
    for built in report.run.builds if report.run else ():
        if built.head is not None and built.head.choice is not None:
            before = built.base.runtime if built.base and not built.base.error else None
            where = f"{code(built.cell.model)} on {code(built.cell.target)}"
            yield f"{where} ships with {_choice(built.head)}{_changed(before, built.head)}."


def _choice(build: Build) -> str:
    name, choice = RUNTIMES[build.runtime], build.choice
    if choice is None or choice.tvm_ms is None or choice.onnxruntime_ms is None:
        return f"{name} ({_first_sentence(choice.reason if choice else '')})"
    ours, theirs, other = choice.tvm_ms, choice.onnxruntime_ms, RUNTIMES["onnxruntime"]
    if build.runtime == "onnxruntime":
        ours, theirs, other = theirs, ours, RUNTIMES["tvm"]
    saved = 100 * (1 - ours / theirs)
    faster = f"{abs(saved):.0f} % {'faster' if saved >= 0 else 'slower'} than {other}"
    return f"{name}: {milliseconds(ours)}, {faster} ({milliseconds(theirs)})"


def _first_sentence(text: str) -> str:
    """What is wrong; what to do about it does not matter to a model that ships all the same."""
    return text.partition(". ")[0].rstrip(".")


def _changed(before: Runtime | None, build: Build) -> str:
    if before is None or before == build.runtime:
        return ""
    return f"; the base runs with {RUNTIMES[before]}"
