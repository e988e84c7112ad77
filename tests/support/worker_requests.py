"""Requests to the processes that compile and that measure, with what most tests leave as it is."""

from pathlib import Path

import msgspec

from tunegate.config import TargetConfig
from tunegate.tune.compiler_protocol import BuildModel
from tunegate.tune.protocol import Candidate, Measure, ModelFile, Schedule


def build_request(model: Path, place: Path, **changes: object) -> BuildModel:
    """A model with default schedules, which goes to `place`/build."""
    request = BuildModel(
        model=ModelFile(file=str(model), path="m.onnx", shapes={}),
        target=TargetConfig(name="cpu", threads=1),
        records={},
        sources={},
        directory=str(place / "build"),
        scratch=str(place / "scratch"),
        seed=1,
    )
    return msgspec.structs.replace(request, **changes)


def make_candidate(number: int = 1, **changes: object) -> Candidate:
    candidate = Candidate(
        number=number,
        workload="w",
        origin="search",
        schedule=Schedule("", ()),
        module="",
        arguments=(),
    )
    return msgspec.structs.replace(candidate, **changes)


def measure_request(candidate: Candidate, **changes: object) -> Measure:
    request = Measure(
        candidate=candidate,
        target_json="{}",
        reference="",
        writes_reference=False,
        loser_ms=1.0,
        seed=1,
        repeats=1,
    )
    return msgspec.structs.replace(request, **changes)
