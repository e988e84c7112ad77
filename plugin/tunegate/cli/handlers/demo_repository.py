"""The throw-away repository of the demo: a SqueezeNet, or one module of it, in three states."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import numpy as np
import onnx
from onnx import helper, numpy_helper

from tunegate.models.light_models import seeded_light
from tunegate.system.git.process import GitProcess, new_repository

DEMO_MODEL = Path("models/squeezenet.onnx")
SLOWED_LAYER = "fire5/expand3x3"
_KERNEL, _QUICK_KERNEL = 9, 5
_FIRST_OF_QUICK, _LAST_OF_QUICK = "fire5/squeeze1x1", "r31"
_IMAGE = (1, 256, 27, 27)
"""The shape of the fourth module's input: (N, C, H, W)."""
_OWN_SETTINGS = {
    "user.name": "tunegate demo",
    "user.email": "demo@tunegate.invalid",
    "core.hooksPath": "/dev/null",
    "commit.gpgSign": "false",
}
_CONFIG = """\
models:
  - path: models/*.onnx
    accuracy: {accuracy}
targets:
  - name: cpu
    usd-per-hour: 0.34
cache:
  url: {cache}
budget:
  minutes: {minutes}
gate:
  margin-percent: {margin}
  seconds: 120
  pairs: {pairs}
"""


class DemoPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the repository: its cache, minutes of tuning, the gate's margin, the block
    pairs of a launch, and the error that the model may have, None for none."""

    cache: Path
    minutes: float
    margin_percent: float
    pairs: int
    max_error_percent: float | None = None

    @property
    def accuracy(self) -> str:
        """The budget as the configuration writes it."""
        budget = self.max_error_percent
        return "same" if budget is None else f"{{max-error: {budget:g}}}"


def create(root: Path, model: onnx.ModelProto, policy: DemoPolicy) -> GitProcess:
    """A repository on branch `main` with one commit, of this model."""
    shutil.rmtree(root, ignore_errors=True)
    repository = new_repository(root)
    for name, value in _OWN_SETTINGS.items():
        repository.text("config", name, value)
    (root / "tunegate.yaml").write_text(
        _CONFIG.format(
            cache=policy.cache.resolve(),
            minutes=policy.minutes,
            margin=policy.margin_percent,
            pairs=policy.pairs,
            accuracy=policy.accuracy,
        )
    )
    commit(repository, model, "Add SqueezeNet")
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


def network(seed: int = 0, *, is_quick: bool = False) -> onnx.ModelProto:
    """The network with weights of this seed. The quick one has one module alone."""
    whole = seeded_light("squeezenet", seed)
    return _module_alone(whole) if is_quick else whole


def _module_alone(whole: onnx.ModelProto) -> onnx.ModelProto:
    names = [node.name for node in whole.graph.node]
    first, last = names.index(_FIRST_OF_QUICK), names.index(_LAST_OF_QUICK)
    nodes = whole.graph.node[first : last + 1]
    read = {name for node in nodes for name in node.input}
    image = helper.make_tensor_value_info(nodes[0].input[0], onnx.TensorProto.FLOAT, _IMAGE)
    result = helper.make_tensor_value_info(nodes[-1].output[0], onnx.TensorProto.FLOAT, None)
    weights = [each for each in whole.graph.initializer if each.name in read]
    graph = helper.make_graph(nodes, "a module of SqueezeNet", [image], [result], weights)
    model = helper.make_model(
        graph, ir_version=whole.ir_version, opset_imports=list(whole.opset_import)
    )
    return onnx.shape_inference.infer_shapes(model)


def slowed_kernel(*, is_quick: bool = False) -> int:
    """The side of the slower kernel. In the quick network, where one layer is half of the time, a
    smaller one is slower by enough, and takes less time to measure."""
    return _QUICK_KERNEL if is_quick else _KERNEL


def slowed(*, is_quick: bool = False) -> onnx.ModelProto:
    """Returns the network with one 3x3 convolution enlarged to `slowed_kernel`: the same shapes
    around it, with more work."""
    side = slowed_kernel(is_quick=is_quick)
    model = network(is_quick=is_quick)
    node = next(n for n in model.graph.node if n.name == SLOWED_LAYER)
    weight = next(t for t in model.graph.initializer if t.name == node.input[1])
    out, channels = weight.dims[0], weight.dims[1]
    values = np.random.default_rng(2).standard_normal((out, channels, side, side))
    scaled = (values / np.sqrt(channels * side * side / 2)).astype(np.float32)
    weight.CopyFrom(numpy_helper.from_array(scaled, weight.name))
    kept = [a for a in node.attribute if a.name not in {"kernel_shape", "pads"}]
    del node.attribute[:]
    node.attribute.extend(kept)
    node.attribute.append(helper.make_attribute("kernel_shape", [side, side]))
    node.attribute.append(helper.make_attribute("pads", [side // 2] * 4))
    return model
