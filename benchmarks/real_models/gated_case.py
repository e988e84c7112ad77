"""One operator case of the `onnx` package, gated with its own data in a process of its own: its
numbers are given as a user gives them, by files of ONNX's test data, and two builds are measured on
what the rules of the artifacts draw from these."""

from __future__ import annotations

import pickle
import statistics
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from onnx import numpy_helper

from benchmarks.kit.operator_case import Outcome, is_static_case, said_of, tell_outcome
from tunegate.artifacts.inputs import GivenFor, InputRule, KnownInputs
from tunegate.config import ValuesConfig
from tunegate.decide.decision import bounds, decide_cell
from tunegate.models.inputs.agreement import agree_on_inputs
from tunegate.models.inputs.given_values import GivenValues
from tunegate.models.model_inputs import kind_of_input
from tunegate.models.reference.session import ReferenceSession
from tunegate.ports import Repository
from tunegate.runtimes.build_child import handle_request
from tunegate.runtimes.builder import Refused, WriteArtifact, WriteReply
from tunegate.runtimes.loading import bound_inferences
from tunegate.system.output.artifact_file import ArtifactFile

_LAUNCHES, _INFERENCES = 4, 20
_MARGIN = np.log(2.0)
"""Inferences of microseconds in one process show no less; the two builds are equal."""


def gate_case(folder: Path) -> None:
    """Leaves an outcome in the folder, renewed at each stage: what a crash leaves is true too."""
    warnings.simplefilter("ignore")
    name, feed = pickle.loads((folder / "case.pickle").read_bytes())
    model = onnx.load(folder / "model.onnx")
    outcome = Outcome(name=name, is_static=is_static_case(model))
    started = time.monotonic()
    try:
        _gate(folder, model, feed, outcome)
    except Exception as error:  # noqa: BLE001 -- a case ends however its runtime ends
        outcome.reason = outcome.reason or said_of(error)
    outcome.seconds = time.monotonic() - started
    tell_outcome(folder, outcome)


def _gate(folder: Path, model: onnx.ModelProto, feed: dict[str, Any], outcome: Outcome) -> None:
    tell_outcome(folder, outcome)
    ReferenceSession(folder / "model.onnx").run(feed)
    outcome.stage = "values"
    tell_outcome(folder, outcome)
    rules = _rules_of_case(folder, model, feed, outcome)
    outcome.stage = "build"
    for side in ("base", "head"):
        reply = _built(folder, side, feed, rules)
        if isinstance(reply, Refused):
            outcome.reason = outcome.reason or reply.reason
        elif reply.check is not None and not reply.check.passed:
            outcome.stage, outcome.reason = "compare", reply.check.detail
    if not outcome.reason:
        outcome.stage = "measure"
        tell_outcome(folder, outcome)
        decision = _measured(folder)
        outcome.stage = "red" if decision == "fail" else "gated"


def _rules_of_case(
    folder: Path, model: onnx.ModelProto, feed: Mapping[str, Any], outcome: Outcome
) -> dict[str, InputRule]:
    """The rules of the case's own values, each in a file that is named by an absolute path."""
    values = {}
    for place, value in enumerate(model.graph.input):
        file = folder / f"input_{place}.pb"
        file.write_bytes(_written(value, feed[value.name]))
        values[value.name] = ValuesConfig(file=str(file))
    wanted = GivenFor(values=values, shapes=_shapes(feed), revisions=())
    found = GivenValues(_NO_REPOSITORY, folder / "kept").rules(folder / "model.onnx", wanted)
    outcome.reason = "; ".join(found.problems)
    return dict(found.rules)


_NO_REPOSITORY = cast(Repository, None)
"""Absolute paths ask none."""


def _written(value: onnx.ValueInfoProto, given: Any) -> bytes:
    """Returns the bytes of a file of the case's test data."""
    form = kind_of_input(value).form or ""
    kind = onnx.OptionalProto.SEQUENCE if "sequence" in form else onnx.OptionalProto.TENSOR
    if "optional" in form:
        return bytes(numpy_helper.from_optional(given, None, kind).SerializeToString())
    if form == "sequence":
        return bytes(numpy_helper.from_list(given).SerializeToString())
    return bytes(numpy_helper.from_array(given).SerializeToString())


def _shapes(feed: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: each.shape for name, each in feed.items() if isinstance(each, np.ndarray)}


def _built(
    folder: Path, side: str, feed: Mapping[str, Any], rules: dict[str, InputRule]
) -> WriteReply:
    """The base is the reference; the numbers of the head are held against it."""
    return handle_request(
        WriteArtifact(
            runtime="onnxruntime",
            variant="",
            settings={},
            is_reference=side == "base",
            file=str(folder / "model.onnx"),
            path="model.onnx",
            shapes=_shapes(feed),
            threads=1,
            directory=str(folder / side),
            scratch=str(folder / f"scratch-{side}"),
            seeds=(1, 2),
            inputs=KnownInputs(given=rules),
        )
    )


def _measured(folder: Path) -> str:
    """The decision on some launches of both sides, each on the inputs of another seed."""
    sides = [folder / side for side in ("base", "head")]
    inputs = agree_on_inputs(*(ArtifactFile.read(side).inputs for side in sides))
    effects = []
    for seed in range(_LAUNCHES):
        runs = [
            bound_inferences(side, seed, own)[0] for side, own in zip(sides, inputs, strict=True)
        ]
        times: list[list[float]] = [[], []]
        for _ in range(_INFERENCES):
            for run, taken in zip(runs, times, strict=True):
                started = time.perf_counter()
                run()
                taken.append(time.perf_counter() - started)
        base, head = map(statistics.median, times)
        effects.append(float(np.log(head / base)))
    return decide_cell(bounds(effects, analyses=1, cells=1), float(_MARGIN))
