"""One operator case of the `onnx` package, in a process of its own: under ONNX Runtime, then built
by us with default schedules, then both beside each other."""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx

from benchmarks.kit.models import TARGET
from tunegate.artifacts.inputs import Files, InputRule, KnownInputs
from tunegate.compiler import compile as compiler
from tunegate.compiler.loader import TvmArtifact
from tunegate.models.reference.session import ReferenceSession
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate.tune.compiler_protocol import BuildModel
from tunegate.tune.protocol import Failed, ModelFile

_COARSE = {"float16": 1e-2, "bfloat16": 4e-2}
"""The relative and the absolute tolerance of short floats."""


class Outcome(msgspec.Struct, kw_only=True):
    """`stage` is the last one that began; `reason` says why it did not end well."""

    name: str
    stage: str = "reference"
    is_static: bool = False
    reason: str = ""
    seconds: float = 0.0


def try_case(folder: Path) -> None:
    """Leaves an outcome in the folder, renewed at each stage: what a crash leaves is true too."""
    warnings.simplefilter("ignore")
    name, feed = pickle.loads((folder / "case.pickle").read_bytes())
    outcome = Outcome(name=name, is_static=is_static_case(onnx.load(folder / "model.onnx")))
    started = time.monotonic()
    try:
        _try_stages(folder, feed, outcome)
    except Exception as error:  # noqa: BLE001 -- a case ends however its compiler ends
        outcome.reason = outcome.reason or said_of(error)
    outcome.seconds = time.monotonic() - started
    tell_outcome(folder, outcome)


def _try_stages(folder: Path, feed: dict[str, Any], outcome: Outcome) -> None:
    tell_outcome(folder, outcome)
    expected = ReferenceSession(folder / "model.onnx").run(feed)
    outcome.stage = "import and build"
    tell_outcome(folder, outcome)
    reply = compiler.handle_request(_request(folder, feed))
    if isinstance(reply, Failed):
        outcome.reason = reply.reason
        return
    outcome.stage = "run"
    tell_outcome(folder, outcome)
    artifact = ArtifactFile.read(folder / "build")
    got = TvmArtifact(folder / "build", artifact).run(feed)
    outcome.stage = "compare"
    outcome.reason = _difference(got, expected)
    if not outcome.reason:
        outcome.stage = "agreed"


def tell_outcome(folder: Path, outcome: Outcome) -> None:
    """Keeps what is known of a case so far."""
    (folder / "outcome.json").write_bytes(msgspec.json.encode(outcome))


def _request(folder: Path, feed: dict[str, Any]) -> BuildModel:
    shapes = {name: np.shape(value) for name, value in feed.items()}
    model = ModelFile(file=str(folder / "model.onnx"), path="model.onnx", shapes=shapes)
    return BuildModel(
        model=model,
        target=TARGET,
        records={},
        sources={},
        directory=str(folder / "build"),
        scratch=str(folder / "scratch"),
        seed=1,
        inputs=KnownInputs(given=_rules_of_case(folder, feed)),
    )


def _rules_of_case(folder: Path, feed: dict[str, Any]) -> dict[str, InputRule]:
    """The case's own numbers, as a user would give them; other values are drawn."""
    rules = {}
    for place, (name, value) in enumerate(feed.items()):
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            np.save(folder / f"{place}.npy", value)
            rules[name] = InputRule(Files((str(folder / f"{place}.npy"),)))
    return rules


def _difference(got: Sequence[Any], expected: Sequence[Any]) -> str:
    if len(got) != len(expected):
        return f"{len(got)} outputs instead of {len(expected)}"
    for place, (ours, theirs) in enumerate(zip(got, expected, strict=True)):
        found = _of_one(np.asarray(ours), np.asarray(theirs))
        if found:
            return f"output {place}: {found}"
    return ""


def _of_one(ours: np.ndarray, theirs: np.ndarray) -> str:
    if ours.shape != theirs.shape:
        return f"shape {ours.shape} instead of {theirs.shape}"
    if ours.dtype != theirs.dtype:
        return f"{ours.dtype} instead of {theirs.dtype}"
    kind = str(theirs.dtype)
    if theirs.dtype.kind in "biu":
        return "" if np.array_equal(ours, theirs) else "other numbers"
    left, right = ours.astype("float64"), theirs.astype("float64")
    is_close = np.allclose(
        left, right, _COARSE.get(kind, 1e-3), _COARSE.get(kind, 1e-5), equal_nan=True
    )
    return "" if is_close else "other numbers"


def is_static_case(model: onnx.ModelProto) -> bool:
    """Returns True where all inputs and outputs are tensors of numbers with known extents."""
    return all(_is_static_tensor(v) for v in (*model.graph.input, *model.graph.output))


def _is_static_tensor(value: onnx.ValueInfoProto) -> bool:
    kind = value.type.tensor_type
    is_numbers = value.type.HasField("tensor_type") and kind.elem_type != onnx.TensorProto.STRING
    return (
        is_numbers
        and kind.HasField("shape")
        and all(dim.HasField("dim_value") for dim in kind.shape.dim)
    )


def said_of(error: Exception) -> str:
    """Returns the text of an exception on one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1][:300] if lines else ''}"
