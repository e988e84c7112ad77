"""One file of a collection, in a process of its own: built for ONNX Runtime, then by us with
default schedules, each checked beside the model as it is written."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import msgspec
import onnx

from benchmarks.kit.models import TARGET
from benchmarks.kit.operator_case import Outcome, is_static_case, said_of, tell_outcome
from tunegate.compiler import compile as compiler
from tunegate.runtimes.build_child import handle_request
from tunegate.runtimes.builder import Refused, WriteArtifact
from tunegate.tune.compiler_protocol import BuildModel, Built, CheckArtifact, Checked
from tunegate.tune.protocol import ModelFile

_SEEDS = (1, 2)


class FileCase(msgspec.Struct, frozen=True):
    """The file, its path in messages, and the sizes that `init` wrote."""

    file: str
    path: str
    shapes: dict[str, tuple[int, ...]]


def try_file(folder: Path) -> None:
    """Leaves an outcome in the folder, renewed at each stage: what a crash leaves is true too."""
    warnings.simplefilter("ignore")
    case = msgspec.json.decode((folder / "case.json").read_bytes(), type=FileCase)
    outcome = Outcome(name=case.path, is_static=is_static_case(onnx.load(case.file)))
    started = time.monotonic()
    try:
        _try_stages(folder, case, outcome)
    except Exception as error:  # noqa: BLE001 -- a case ends however its compiler ends
        outcome.reason = outcome.reason or said_of(error)
    outcome.seconds = time.monotonic() - started
    tell_outcome(folder, outcome)


def _try_stages(folder: Path, case: FileCase, outcome: Outcome) -> None:
    outcome.stage = "onnxruntime"
    tell_outcome(folder, outcome)
    plain = WriteArtifact(
        runtime="onnxruntime",
        variant="onnxruntime",
        settings={},
        is_reference=True,
        file=case.file,
        path=case.path,
        shapes=case.shapes,
        threads=1,
        directory=str(folder / "plain"),
        scratch=str(folder / "plain-scratch"),
        seeds=_SEEDS,
    )
    written = handle_request(plain)
    if isinstance(written, Refused):
        outcome.reason = written.reason
        return
    outcome.stage = "import and build"
    tell_outcome(folder, outcome)
    request = BuildModel(
        model=ModelFile(file=case.file, path=case.path, shapes=case.shapes),
        target=TARGET,
        records={},
        sources={},
        directory=str(folder / "build"),
        scratch=str(folder / "scratch"),
        seed=_SEEDS[0],
    )
    built = compiler.handle_request(request)
    if not isinstance(built, Built):
        outcome.reason = str(getattr(built, "reason", built))
        return
    outcome.stage = "run"
    tell_outcome(folder, outcome)
    question = CheckArtifact(
        directory=request.directory, reference=built.reference, kind=TARGET.kind, seeds=_SEEDS
    )
    checked = compiler.handle_request(question)
    if not isinstance(checked, Checked) or checked.check is None:
        outcome.reason = str(getattr(checked, "reason", checked))
        return
    outcome.stage = "agreed" if checked.check.passed else "compare"
    outcome.reason = checked.check.detail
