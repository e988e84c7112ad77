from __future__ import annotations

import json

import onnx
import pytest
from onnx import helper

from tests.support.graphs import GraphInput, graph_of, node
from tunegate.models.size_evidence import Evidence, evidence_of

WHISPER = {"num_mel_bins": 80, "max_source_positions": 1500}


def model(**metadata: str) -> onnx.ModelProto:
    made = graph_of([node("Relu", "x", "y")], [GraphInput("x", (1, 3, 8, 8), "float32")])
    helper.set_model_props(made, metadata)
    return made


def beside(name: str, **document: object) -> Evidence:
    return evidence_of(model(), "models/m.onnx", {name: json.dumps(document).encode()})


def test_a_detector_says_its_own_image_size() -> None:
    found = evidence_of(model(imgsz="[1280, 1280]", stride="32"), "models/best.onnx")
    assert found.image == (1280, 1280)
    assert found.why == {"image": "the model's metadata say it"}


@pytest.mark.parametrize("size", ["640", "[1, 3, 640, 640]", "640x640", "(640, 640)"])
def test_an_image_size_is_read_in_the_forms_that_exporters_write(size: str) -> None:
    assert evidence_of(model(input_size=size), "m.onnx").image == (640, 640)


def test_metadata_say_a_sample_rate() -> None:
    assert evidence_of(model(sample_rate="22050"), "m.onnx").sample_rate == 22050


@pytest.mark.parametrize(
    ("document", "image"),
    [
        ({"size": {"height": 384, "width": 512}}, (384, 512)),
        ({"size": {"shortest_edge": 256}, "crop_size": 224}, (224, 224)),
        ({"image_size": 518}, (518, 518)),
        ({"vision_config": {"image_size": 336}}, (336, 336)),
        ({"pretrained_cfg": {"input_size": [3, 260, 260]}}, (260, 260)),
    ],
)
def test_preprocessors_beside_a_model_say_its_image(
    document: dict[str, object], image: tuple[int, int]
) -> None:
    found = beside("preprocessor_config.json", **document)
    assert found.image == image
    assert found.why["image"] == "preprocessor_config.json beside it says it"


def test_configurations_beside_a_model_say_how_long_its_inputs_are() -> None:
    assert beside("tokenizer_config.json", model_max_length=77).max_length == 77
    assert beside("config.json", **WHISPER).frames == 3000
    assert beside("preprocessor_config.json", sampling_rate=16000).sample_rate == 16000


def test_a_limit_that_is_no_limit_says_nothing() -> None:
    assert beside("tokenizer_config.json", model_max_length=10**30).max_length == 0


@pytest.mark.parametrize(
    "content", [b"[1, 2]", b"{", b"[" * 100_000, b'{"size": -3}', b'{"image_size": true}', b"\xff"]
)
def test_odd_files_beside_a_model_say_nothing(content: bytes) -> None:
    found = evidence_of(model(), "m.onnx", {"config.json": content})
    assert (found.image, found.why) == ((), {})


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("models/ch_PP-OCRv5_rec_infer.onnx", "text line"),
        ("weights/yolov8n.onnx", "detector"),
        ("vad/model.onnx", "sound"),
    ],
)
def test_the_path_hints_at_what_a_model_is_for(path: str, hint: str) -> None:
    assert hint in evidence_of(model(), path).hints


def test_a_list_of_characters_in_the_file_makes_a_recognizer() -> None:
    assert "text line" in evidence_of(model(character="a b c"), "models/m.onnx").hints
    assert not evidence_of(model(), "models/m.onnx").hints
