"""Reads a model's usual sizes from its file and the files beside it: metadata of exporters,
configurations of transformers, tokenizers and preprocessors, words of its path. Pure.

Others wrote all of these: they are read as numbers within bounds, and odd values are ignored.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

import msgspec
import onnx

BESIDE = (
    "preprocessor_config.json",
    "processor_config.json",
    "sentence_bert_config.json",
    "tokenizer_config.json",
    "config.json",
)
"""Names of files that may lie beside a model, or one folder above, as with `onnx/model.onnx`. The
first one with an answer counts."""
MAX_BESIDE_BYTES = 1 << 20
_MAX_SIDE = 8192
_MAX_LENGTH = 65536
_MAX_RATE = 192_000
_PAIR = 2
_FRAMES_A_POSITION = 2
"""Whisper halves its frames before it numbers them."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The sides of an image, the most tokens, a number of sound frames, and a sample rate: 0 if
    unknown, with the reason in `why` by field name. `hints` tell what the model is for, by the
    words of its path."""

    image: tuple[int, int] | tuple[()] = ()
    max_length: int = 0
    frames: int = 0
    sample_rate: int = 0
    hints: frozenset[str] = frozenset()
    why: Mapping[str, str] = {}


NO_EVIDENCE = Evidence()
_TAG = r"</\w+>"
"""Models of tables write tags, not letters."""
_LENGTHS = ("max_seq_length", "model_max_length", "max_position_embeddings", "max_len", "maxlen")

_HINTS: tuple[tuple[str, str], ...] = (
    ("text line", r"rec|recog|recogni[sz]er|ocr|crnn|captcha|lpr|plates?|svtr|trocr|parseq"),
    ("detector", r"det|detect(or|ion)?|yolo\w*|ssd|rtdetr|dfine|layout|nanodet|yunet"),
    ("sound", r"vad|audio|wav\w*|speech|sound|voice|asr|stt|tts|denois\w*|enhance\w*|pitch|f0|kws"),
    ("eeg", r"eeg|ecg|ieeg|emg"),
)


def evidence_of(model: onnx.ModelProto, path: str, files: Mapping[str, bytes] = {}) -> Evidence:
    """Returns the evidence. The model's metadata count before the files beside it, whose contents
    are given by name."""
    values: dict[str, Any] = {}
    why: dict[str, str] = {}
    metadata = {entry.key.casefold(): entry.value for entry in model.metadata_props}
    for source, facts in _sources(metadata, files):
        for name, value in facts:
            if value and name not in values:
                values[name], why[name] = value, source
    words = {*_words(path), *_words(model.graph.name)}
    hints = {hint for hint, names in _HINTS if any(re.fullmatch(names, word) for word in words)}
    letters = metadata.get("character", metadata.get("dictionary"))
    if letters is not None and not re.search(_TAG, letters):
        hints.add("text line")
    return Evidence(**values, hints=frozenset(hints), why=why)


def _words(path: str) -> Iterator[str]:
    """Yields the words of the last folder and of the name."""
    name = "/".join(PurePosixPath(path).with_suffix("").parts[-2:])
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).casefold()
    return (word for word in re.split(r"[^a-z0-9]+", text) if word)


_Facts = list[tuple[str, Any]]


def _sources(
    metadata: Mapping[str, str], files: Mapping[str, bytes]
) -> Iterator[tuple[str, _Facts]]:
    yield "the model's metadata say it", [*_metadata_facts(metadata)]
    for name in BESIDE:
        document = _document(files.get(name, b""))
        if document:
            yield f"{name} beside it says it", [*_document_facts(document)]


def _metadata_facts(metadata: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    for key in ("imgsz", "img_size", "image_size", "input_size", "input_shape", "resolution"):
        yield "image", _image_sides(_numbers(metadata.get(key, "")))
    yield (
        "image",
        _image_sides([*_numbers(metadata.get("height", "")), *_numbers(metadata.get("width", ""))]),
    )
    for key in ("sample_rate", "sampling_rate", "sr", "audio_sample_rate"):
        yield "sample_rate", _single_number(_numbers(metadata.get(key, "")), _MAX_RATE)
    for key in ("max_length", *_LENGTHS):
        yield "max_length", _single_number(_numbers(metadata.get(key, "")), _MAX_LENGTH)


def _numbers(text: str) -> list[int]:
    return [int(each) for each in re.findall(r"(?<![\d.])\d{1,9}(?![\d.])", text[:200])]


def _document(content: bytes) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        document = json.loads(content) if content else {}
        return document if isinstance(document, dict) else {}
    return {}


def _document_facts(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    parts = [
        document,
        *(
            document[key]
            for key in ("feature_extractor", "image_processor", "vision_config", "pretrained_cfg")
            if isinstance(document.get(key), dict)
        ),
    ]
    for part in parts:
        for key in ("crop_size", "size", "image_size", "input_size"):
            yield "image", _image_sides(_extents(part.get(key)))
        yield "sample_rate", _single_number(_integers(part.get("sampling_rate")), _MAX_RATE)
        yield "frames", _single_number(_integers(part.get("nb_max_frames")), _MAX_LENGTH)
        positions = _single_number(_integers(part.get("max_source_positions")), _MAX_LENGTH)
        yield "frames", positions * _FRAMES_A_POSITION if "num_mel_bins" in part else 0
    inner = [each for each in document.values() if isinstance(each, dict)]
    for part in (*parts, *inner):
        for key in _LENGTHS:
            yield "max_length", _single_number(_integers(part.get(key)), _MAX_LENGTH)


def _extents(value: Any) -> list[int]:
    """Returns the sides of an image, in the forms that preprocessors write."""
    if isinstance(value, dict):
        pair = [value.get("height"), value.get("width")]
        return _integers(pair) or _integers(value.get("shortest_edge"))
    return _integers(value)


def _integers(value: Any) -> list[int]:
    every = value if isinstance(value, list) else [value]
    numbers = [each for each in every if isinstance(each, int) and not isinstance(each, bool)]
    return numbers if len(numbers) == len(every) else []


def _image_sides(numbers: Sequence[int]) -> tuple[int, int] | tuple[()]:
    """Returns height and width: a single number is both; of more, the last two that may be
    sides."""
    sides = [number for number in numbers if number > 4][-_PAIR:]  # noqa: PLR2004 -- fewer are channels
    if not sides or max(sides) > _MAX_SIDE:
        return ()
    return (sides[0], sides[-1])


def _single_number(numbers: Sequence[int], most: int) -> int:
    return numbers[0] if len(numbers) == 1 and 0 < numbers[0] <= most else 0
