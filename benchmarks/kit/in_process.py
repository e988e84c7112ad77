"""The functions of a model, and candidates of them measured, in this process: for
benchmarks of the search alone."""

from __future__ import annotations

from pathlib import Path

import onnx

from benchmarks.kit.models import TARGET, named_model
from tunegate.compiler import worker
from tunegate.compiler.build.functions import ModelFunction, functions_of
from tunegate.compiler.opening import import_in_layout
from tunegate.compiler.targets import ResolvedTarget, tvm_target
from tunegate.models.preparation import prepare
from tunegate.tune import candidate_requests as measuring
from tunegate.tune.protocol import Candidate, Measure, Measured

RESOLVED = tvm_target(TARGET)


def imported(
    proto: onnx.ModelProto, scratch: Path, resolved: ResolvedTarget = RESOLVED
) -> list[ModelFunction]:
    """Channels last; `scratch` is made."""
    scratch.mkdir()
    file = scratch / "m.onnx"
    onnx.save(proto, file)
    prepared = prepare(file, shapes={}, into=scratch / "p", path="m.onnx")
    module = import_in_layout(prepared, resolved.target, "m.onnx", ("nhwc",))
    return functions_of(module)


def heaviest(name: str, scratch: Path, resolved: ResolvedTarget = RESOLVED) -> list[ModelFunction]:
    """The functions of a model, each once, those first that compute most."""
    every = {f.workload.digest: f for f in imported(named_model(name), scratch, resolved)}
    return sorted(every.values(), key=lambda f: -f.flops * f.weight)


def measured(
    candidate: Candidate, best: float, place: Path, resolved: ResolvedTarget = RESOLVED
) -> Measured:
    """Measures as a worker of a run does; `best` are the milliseconds by which losers are told."""
    request = Measure(
        candidate=candidate,
        target_json=resolved.export_json(),
        reference=str(place / "reference.npy"),
        writes_reference=candidate.origin == "default",
        loser_ms=measuring._LOSER_FACTOR * best,
        seed=1,
        repeats=measuring._REPEATS,
        repeat_ms=measuring._REPEAT_MS,
    )
    return worker.handle_request(request)
