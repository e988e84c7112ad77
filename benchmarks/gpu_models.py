"""Eight models as PyTorch exports them, and what a user would run instead of tunegate: PyTorch.

    python -m benchmarks.gpu_models FOLDER [--models encoder resnet50 ...] [--seconds 110]

Writes <FOLDER>/<model>.onnx, and after each figure <FOLDER>/peers.json. The columns are the
milliseconds of one inference, by CUDA events: eager, in a CUDA graph, the same with TF32 and
in float16, and by torch.compile. Weights are random. Without a GPU models are only exported. What
does not work is told, and the next goes on; nothing new begins after `--seconds`.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.kit.command import Many, command_line
from benchmarks.kit.tables import heading, row

_TOKENS, _VOCABULARY, _SAMPLES = 128, 8000, 16_000
_WARM_UP, _TIMED = 20, 200


class Exported(NamedTuple):
    """A PyTorch module with its arguments by name. `dynamic` is the input whose last axis has any
    length."""

    module: Any
    inputs: dict[str, Any]
    dynamic: str = ""


def main() -> None:
    options = command_line(
        __doc__, ("folder", Path), models=Many(str, is_required=False), seconds=110.0
    )
    import torch  # noqa: PLC0415 -- no part of this project's environment

    torch.manual_seed(0)
    until = time.monotonic() + options.seconds
    options.folder.mkdir(parents=True, exist_ok=True)
    made: dict[str, Exported] = {}
    for name in options.models or MODELS:
        if time.monotonic() >= until:
            break
        with _telling(name, "export") as errors:
            made[name] = MODELS[name]()
            _export(made[name], options.folder / f"{name}.onnx")
        if errors:
            made.pop(name, None)
    peers: dict[str, dict[str, float]] = {name: {} for name in made}
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    if torch.cuda.is_available():
        # First what every model needs; the slow compiler comes last.
        for way, measure in WAYS.items():
            for name, model in made.items():
                if time.monotonic() < until:
                    with _telling(name, way):
                        peers[name][way] = measure(model)
                    (options.folder / "peers.json").write_text(json.dumps(peers, indent=1))
    heading(f"model | {' | '.join(f'{way}, ms' for way in WAYS)}")
    for name, times in peers.items():
        row(name, *(f"{times[way]:.3f}" if way in times else "" for way in WAYS))


@contextmanager
def _telling(name: str, doing: str) -> Iterator[list[str]]:
    """Reports what the body raises, and goes on."""
    errors: list[str] = []
    began = time.monotonic()
    try:
        yield errors
    except Exception as error:  # noqa: BLE001 -- any model may lack an operator, a compiler or memory
        errors.append(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
    seconds = time.monotonic() - began
    print(f"{name}: {doing}: {errors[0] if errors else f'{seconds:.1f} s'}", flush=True)


def _export(model: Exported, file: Path) -> None:
    import torch  # noqa: PLC0415

    dynamic = None
    if model.dynamic:
        last = model.inputs[model.dynamic].dim() - 1
        any_length = {last: torch.export.Dim("length", min=400, max=160_000)}
        dynamic = [any_length if name == model.dynamic else None for name in model.inputs]
    torch.onnx.export(
        model.module,
        tuple(model.inputs.values()),
        str(file),
        input_names=list(model.inputs),
        dynamo=True,
        external_data=False,
        dynamic_shapes=dynamic,
        verbose=False,
    )


def _encoder() -> Exported:
    import torch  # noqa: PLC0415
    import transformers  # noqa: PLC0415

    config = transformers.BertConfig(
        vocab_size=_VOCABULARY,
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
        attn_implementation="eager",
        return_dict=False,
    )
    module = transformers.BertModel(config, add_pooling_layer=False).eval()
    ids = torch.randint(0, _VOCABULARY, (1, _TOKENS))
    return Exported(module, {"input_ids": ids, "attention_mask": torch.ones_like(ids)})


def _decoder() -> Exported:
    import torch  # noqa: PLC0415
    import transformers  # noqa: PLC0415

    config = transformers.GPT2Config(
        vocab_size=_VOCABULARY,
        n_positions=_TOKENS,
        n_embd=384,
        n_layer=6,
        n_head=6,
        use_cache=False,
        attn_implementation="eager",
        return_dict=False,
    )

    class LastHidden(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = transformers.GPT2Model(config)

        def forward(self, ids: Any) -> Any:
            return self.model(input_ids=ids)[0]

    return Exported(LastHidden().eval(), {"ids": torch.randint(0, _VOCABULARY, (1, _TOKENS))})


def _detector() -> Exported:
    """A detector up to its boxes and scores: what keeps some of them depends on values."""
    import torch  # noqa: PLC0415
    import torchvision  # noqa: PLC0415

    whole = torchvision.models.detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None
    ).eval()

    class Heads(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.backbone, self.head = whole.backbone, whole.head

        def forward(self, image: Any) -> Any:
            found = self.head(list(self.backbone(image).values()))
            return found["bbox_regression"], found["cls_logits"]

    return Exported(Heads().eval(), {"image": torch.randn(1, 3, 320, 320)})


def _image_classifier(name: str) -> Exported:
    import torch  # noqa: PLC0415
    import torchvision  # noqa: PLC0415

    module = getattr(torchvision.models, name)(weights=None).eval()
    return Exported(module, {"image": torch.randn(1, 3, 224, 224)})


def _speech() -> Exported:
    """An encoder of sound, of any length."""
    import torch  # noqa: PLC0415
    import transformers  # noqa: PLC0415

    config = transformers.Wav2Vec2Config(
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=1024,
        attn_implementation="eager",
        return_dict=False,
    )
    module = transformers.Wav2Vec2Model(config).eval()
    return Exported(module, {"sound": torch.randn(1, _SAMPLES)}, dynamic="sound")


def _masks() -> Exported:
    """The part of a model that stands before an encoder: positions, masks and rows of a table of
    bytes, in integers and booleans alone."""
    import torch  # noqa: PLC0415

    class Masks(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("kinds", torch.randint(0, 256, (9, 16), dtype=torch.uint8))

        def forward(self, ids: Any) -> Any:
            is_word = ids.ne(0)
            places = torch.cumsum(is_word.to(torch.int64), dim=1) * is_word
            order = torch.arange(ids.shape[1], device=ids.device)
            sees = (order[None, :] <= order[:, None])[None] & is_word[:, None, :]
            return places, sees, torch.where(is_word, ids, -100), self.kinds[ids]

    return Exported(Masks(), {"ids": torch.randint(0, 9, (1, 512))})


def _places() -> Exported:
    """A size that depends on values: TVM refuses it."""
    import torch  # noqa: PLC0415

    class Places(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.least = torch.nn.Parameter(torch.randn(64, 64))

        def forward(self, x: Any) -> Any:
            return torch.nonzero(x > self.least)

    return Exported(Places(), {"x": torch.randn(64, 64)})


MODELS: dict[str, Callable[[], Exported]] = {
    "encoder": _encoder,
    "resnet50": lambda: _image_classifier("resnet50"),
    "decoder": _decoder,
    "mobilenet_v2": lambda: _image_classifier("mobilenet_v2"),
    "detector": _detector,
    "speech": _speech,
    "masks": _masks,
    "places": _places,
}

USUAL = ("encoder", "resnet50")
"""The models that a short lease has time for."""
REFUSED = ("places",)
"""The models that TVM does not take."""
SIZES = {"speech": f"length: {_SAMPLES}"}
"""The size of a model's dynamic dimension."""


def _on_device(model: Exported) -> tuple[Any, tuple[Any, ...]]:
    return model.module.cuda(), tuple(each.cuda() for each in model.inputs.values())


def _median_ms(run: Callable[[], object]) -> float:
    """The median milliseconds of one inference."""
    import torch  # noqa: PLC0415

    times = []
    for number in range(_WARM_UP + _TIMED):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        if number >= _WARM_UP:
            times.append(float(begin.elapsed_time(end)))
    return statistics.median(times)


def _eager_ms(model: Exported) -> float:
    import torch  # noqa: PLC0415

    module, inputs = _on_device(model)
    with torch.no_grad():
        return _median_ms(lambda: module(*inputs))


def _graph_ms(model: Exported, *, tf32: bool = False, half: bool = False) -> float:
    """In a CUDA graph, in float32 unless one of these says otherwise."""
    import torch  # noqa: PLC0415

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    module, inputs = _on_device(model)
    if half:
        module = module.half()
        inputs = tuple(each.half() if each.is_floating_point() else each for each in inputs)
    try:
        with torch.no_grad():
            aside = torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                for _ in range(5):
                    module(*inputs)
            torch.cuda.current_stream().wait_stream(aside)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                module(*inputs)
            return _median_ms(graph.replay)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        if half:
            model.module.float()


def _compiled_ms(model: Exported) -> float:
    import torch  # noqa: PLC0415

    module, inputs = _on_device(model)
    torch._dynamo.reset()
    compiled = torch.compile(module, mode="reduce-overhead")
    with torch.no_grad():
        return _median_ms(lambda: compiled(*inputs))


WAYS: dict[str, Callable[[Exported], float]] = {
    "eager": _eager_ms,
    "graph": _graph_ms,
    "tf32": lambda model: _graph_ms(model, tf32=True),
    "float16": lambda model: _graph_ms(model, half=True),
    "compile": _compiled_ms,
}
FLOAT32 = ("eager", "graph", "compile")
"""Those that compute in float32: TF32 is off."""


if __name__ == "__main__":
    main()
