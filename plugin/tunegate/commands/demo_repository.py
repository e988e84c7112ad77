"""The throw-away repository of the demo: a SqueezeNet, and three states of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tunegate.edges.git.process import GitProcess, new_repository
from tunegate.edges.models.light_models import seeded_light

DEMO_MODEL = Path("models/squeezenet.onnx")
SLOWED_LAYER = "fire5/expand3x3"
_KERNEL = 9
_OWN_SETTINGS = {
    "user.name": "tunegate demo",
    "user.email": "demo@tunegate.invalid",
    "core.hooksPath": "/dev/null",
    "commit.gpgSign": "false",
}
_CONFIG = """\
models:
  - path: models/*.onnx
targets:
  - name: cpu
    usd-per-hour: 0.34
cache:
  url: {cache}
budget:
  minutes: {minutes}
gate:
  margin-percent: 3
  seconds: 120
"""


def create(root: Path, *, cache: Path, minutes: float) -> GitProcess:
    """A repository on branch `main` with one commit."""
    shutil.rmtree(root, ignore_errors=True)
    repository = new_repository(root)
    for name, value in _OWN_SETTINGS.items():
        repository.text("config", name, value)
    (root / "tunegate.yaml").write_text(_CONFIG.format(cache=cache.resolve(), minutes=minutes))
    commit(repository, seeded_light("squeezenet", seed=0), "Add SqueezeNet")
    return repository


def commit(repository: GitProcess, model: onnx.ModelProto, message: str) -> str:
    file = repository.root / DEMO_MODEL
    file.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, file)
    repository.text("add", "--all")
    repository.text("commit", "-q", "-m", message)
    return repository.text("rev-parse", "HEAD") or ""


def branch(repository: GitProcess, name: str) -> None:
    repository.text("checkout", "-q", "-B", name, "main")


def retrained() -> onnx.ModelProto:
    """The same graph, other weights."""
    return seeded_light("squeezenet", seed=1)


def slowed() -> onnx.ModelProto:
    """One 3x3 convolution becomes 9x9: the same shapes around it, nine times its work."""
    model = seeded_light("squeezenet", seed=0)
    node = next(n for n in model.graph.node if n.name == SLOWED_LAYER)
    weight = next(t for t in model.graph.initializer if t.name == node.input[1])
    out, channels = weight.dims[0], weight.dims[1]
    values = np.random.default_rng(2).standard_normal((out, channels, _KERNEL, _KERNEL))
    scaled = (values / np.sqrt(channels * _KERNEL * _KERNEL / 2)).astype(np.float32)
    weight.CopyFrom(numpy_helper.from_array(scaled, weight.name))
    kept = [a for a in node.attribute if a.name not in {"kernel_shape", "pads"}]
    del node.attribute[:]
    node.attribute.extend(kept)
    node.attribute.append(helper.make_attribute("kernel_shape", [_KERNEL, _KERNEL]))
    node.attribute.append(helper.make_attribute("pads", [_KERNEL // 2] * 4))
    return model
