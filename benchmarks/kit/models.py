"""The models of the benchmarks, by name."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
from tests.support.models.transformer import transformer

from tunegate.config import TargetConfig
from tunegate.models.light_models import seeded_light

TARGET = TargetConfig(name="cpu", threads=1)


def named_model(name: str) -> onnx.ModelProto:
    """`squeezenet`, `resnet50`, ...: the light models;
    `transformer-96`: with that sequence length."""
    kind, _, sequence = name.partition("-")
    if kind == "transformer":
        return transformer(sequence=int(sequence or 128))
    return seeded_light(name, seed=0)


def saved(name: str, scratch: Path) -> Path:
    """The file of the model, written to `scratch`."""
    file = scratch / f"{name}.onnx"
    onnx.save(named_model(name), file)
    return file


def one_thread() -> None:
    """Makes TVM run what is timed here with one thread."""
    os.environ["TVM_NUM_THREADS"] = "1"
