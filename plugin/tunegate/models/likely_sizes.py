"""Likely sizes of an open dimension: by the file's own statements, by the words of its name and
input, and by its position. Pure."""

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import msgspec

from tunegate.artifacts.changes import ModelInput
from tunegate.models.size_evidence import NO_EVIDENCE, Evidence

_SQUARES = ((224, 224), (256, 256), (320, 320), (640, 640))
_LINES = ((48, 320), (32, 320), (64, 256))
_OTHER_SQUARES = ((512, 512), (128, 128), (64, 64), (32, 32), (1024, 1024))
_DETECTED = ((640, 640), (320, 320), (416, 416), (800, 800), (1280, 1280), (960, 960))
CHUNKS = (512, 576, 256, 1536, 1024, 160, 480, 1600, 16000)
CLIPS = (16000, 8000, 48000, 32000, 80000, 160000, 4096, 1024, 512, 576, 256)
LENGTHS = (128, 512, 64, 256, 32, 16, 8, 1, 1024, 2048, 3000, 4096, 16000)
_GENERATED = r"(.*\bunk|(.*\.)?dynamic_?dimension|dim|d|s|u|.*_dim|.*_dynamic_axes)[._]*\d+"
_SOUND = r"audio|wave|signal|speech|pcm"
_SAMPLE_RATE = r"sr|fs|sampl(e|ing)_?rate"
_STATE = r"state|hidden|h_?0|c_?0|h_?n|c_?n|memory|cache"
_ANY_COUNT = r"n|b"
"""Letters for a batch in front, and for any number behind one."""
_IMAGE_RANK, _SEQUENCE_RANK, _MATRIX_RANK = 4, 3, 2
_COLORS = frozenset({1, 3, 4})
_CHANNELS_OF_SOUND = 2
_SPATIAL = 3


class LikelySize(NamedTuple):
    """The sizes to try, the likeliest first, and why. Dimensions of one `kind` are tried together.
    If the file itself states the first size (`said`), the others have another reason."""

    sizes: tuple[int, ...]
    why: str
    kind: str
    said: str = ""

    def reason(self, size: int) -> str:
        """Returns why it is this size."""
        return self.said if self.said and size == self.sizes[0] else self.why


_OF_GRAPHS: tuple[tuple[str, LikelySize], ...] = (
    (r"num_?nodes?|nodes?|vertices", LikelySize((16,), "nodes of a graph", "nodes")),
    (r"num_?edges?|edges?", LikelySize((32,), "edges of a graph", "edges")),
    (r"atoms?|atomic|elements", LikelySize((16,), "atoms of a molecule", "nodes")),
    (r"bonds?", LikelySize((32,), "bonds of a molecule, both ways", "edges")),
    (r"residues?|amino_?acids?", LikelySize((64,), "residues of a protein", "residues")),
    (r"points|vertex|xyz", LikelySize((1024, 2048, 256), "points in space", "points")),
    (r"boxes|rois|proposals|bboxes", LikelySize((16,), "boxes", "boxes")),
)
_OF_PROTEIN = {
    "nodes": LikelySize((512, 64, 16), "atoms of a protein of 64 residues", "nodes"),
    "edges": LikelySize((4096, 512, 32), "edges of a protein of 64 residues", "edges"),
}
_Key = TypeVar("_Key")
_BY_NAME: tuple[tuple[str, LikelySize], ...] = (
    (r"past|cache", LikelySize((16, 1), "what is cached", "past")),
    (r"batch|bsz|bs", LikelySize((1,), "a batch", "batch")),
    *_OF_GRAPHS,
    (_ANY_COUNT, LikelySize((1,), "a batch", "batch")),
    (r"num_?graphs?|graphs?", LikelySize((1,), "graphs", "batch")),
    (r"channels?|c", LikelySize((3, 1), "channels", "channels")),
    (r"height|width|h|w|img_?size|image_?size", LikelySize((), "an image", "image")),
    (r"samples|audio|waveform", LikelySize((), "samples of sound", "sound")),
    (
        r"seq|sequence|length|len|tokens?|time|timesteps?|frames?|steps?|t|s",
        LikelySize((), "a length", "length"),
    ),
)


class ModelKind(msgspec.Struct, frozen=True):
    """Facts about a whole model: the `evidence` of its file, and whether it is `for_sound`, keeps a
    `state` between pieces of sound, takes `tokens`, or takes several `vectors` and nothing else."""

    evidence: Evidence = NO_EVIDENCE
    for_sound: bool = False
    state: bool = False
    tokens: bool = False
    vectors: bool = False


_ANY = ModelKind()


def model_kind(inputs: Sequence[ModelInput], evidence: Evidence = NO_EVIDENCE) -> ModelKind:
    """Returns the kind of a model with these inputs."""
    has_rate = any(re.fullmatch(_SAMPLE_RATE, value.name, re.IGNORECASE) for value in inputs)
    state = any(re.search(_STATE, value.name, re.IGNORECASE) for value in inputs)
    tokens = any("int" in value.dtype and len(value.dimensions) > 1 for value in inputs)
    vectors = len(inputs) > 1 and all(len(value.dimensions) == 1 for value in inputs)
    for_sound = has_rate or "sound" in evidence.hints
    return ModelKind(evidence, for_sound, state or has_rate, tokens, vectors)


def likely_size(value: ModelInput, axis: int, kind: ModelKind = _ANY) -> LikelySize:
    """Returns the likely sizes: by the symbol's words first, then the input's, then the dimension's
    position."""
    likely = _guess_size(value, axis)
    if kind.vectors and likely.kind == "batch" and "batch" not in value.symbol(axis).casefold():
        return _length(value, "a vector of data, as all inputs", kind.evidence)
    if likely.kind == "image":
        return _image(value, axis, likely.why, kind.evidence)
    if likely.kind == "length" and _is_sound(value, axis, kind):
        likely = LikelySize((), "samples of sound", "sound")
    if likely.kind == "sound":
        return _sound(likely.why, kind)
    return _length(value, likely.why, kind.evidence) if likely.kind == "length" else likely


def of_protein(likely: dict[_Key, LikelySize]) -> dict[_Key, LikelySize]:
    """Returns the sizes of a model; if it has residues, with as many atoms and edges as they
    have."""
    if all(each.kind != "residues" for each in likely.values()):
        return likely
    return {place: _OF_PROTEIN.get(each.kind, each) for place, each in likely.items()}


def is_generated(symbol: str) -> bool:
    """Returns whether an exporter numbered the symbol: it means something else in another model."""
    return re.fullmatch(_GENERATED, symbol, re.IGNORECASE) is not None


def _guess_size(value: ModelInput, axis: int) -> LikelySize:
    symbol = value.symbol(axis)
    words = set() if is_generated(symbol) else _words(symbol)
    says_little = all(len(word) == 1 for word in words)
    of_input = _size_by_name(value, axis) if says_little else None
    if of_input is not None:
        return of_input
    is_behind = axis > 0 and value.dimensions[0] in {None, 1}
    for pattern, likely in _BY_NAME:
        if is_behind and pattern == _ANY_COUNT:
            continue
        if any(re.fullmatch(pattern, word) for word in words):
            return likely
    return _size_by_position(value, axis)


def _size_by_name(value: ModelInput, axis: int) -> LikelySize | None:
    """Returns the size by the input's name if the axis is the first, or the only open one behind a
    batch of 1."""
    last = value.dimensions[-1] if value.dimensions else None
    is_place = axis == 0 or (axis == 1 and len(value.dimensions) == _SPATIAL)
    words = _words(value.name)
    is_pairs = axis == 1 and value.dimensions[0] == 2  # noqa: PLR2004 -- two ends of each edge
    for pattern, likely in _OF_GRAPHS if is_place or is_pairs else ():
        if any(re.fullmatch(pattern, word) for word in words):
            return likely
    is_position = any(re.fullmatch(r"pos|positions?|coords?|coordinates?", word) for word in words)
    if is_place and is_position and last == _SPATIAL:
        return LikelySize((16,), "positions of atoms", "nodes")
    return None


def _words(symbol: str) -> set[str]:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", symbol).casefold()
    return {spaced, *re.split(r"[\W_\d]+", spaced)} - {""}


def _size_by_position(value: ModelInput, axis: int) -> LikelySize:
    if axis == 0 or _is_state(value, axis):
        return LikelySize((1,), "the first dimension is a batch", "batch")
    if len(value.dimensions) == _IMAGE_RANK:
        if axis == _channel_axis(value):
            return LikelySize((3, 1), "channels of an image", "channels")
        return LikelySize((), "a side of an image", "image")
    return LikelySize((), "a length", "length")


def _is_state(value: ModelInput, axis: int) -> bool:
    """Returns whether the axis is the batch of a recurrent state: (layers, batch, width)."""
    is_named = re.search(_STATE, value.name, re.IGNORECASE)
    return axis == 1 and len(value.dimensions) == _SEQUENCE_RANK and bool(is_named)


def _channel_axis(value: ModelInput) -> int:
    return 3 if value.dimensions[3] in _COLORS and value.dimensions[1] not in _COLORS else 1


# The sides of an image. The lists of heights and widths belong together, entry by entry.


def _image(value: ModelInput, axis: int, why: str, evidence: Evidence) -> LikelySize:
    side = _other_side(value, axis)
    if side is not None:
        return _beside(side)
    pairs = _pairs(evidence)
    is_height = _is_height(value, axis)
    sizes = tuple(pair[0 if is_height else 1] for pair in pairs)
    if "text line" in evidence.hints and "detector" not in evidence.hints:
        why = f"{why} of a line of text, as the model's name says"
    return LikelySize(sizes, why, "image", evidence.why.get("image", ""))


def _pairs(evidence: Evidence) -> tuple[tuple[int, int], ...]:
    by_name = (evidence.image,) if evidence.image else ()
    if "detector" in evidence.hints:
        every = (*by_name, *_DETECTED, *_SQUARES, *_LINES, *_OTHER_SQUARES)
    elif "text line" in evidence.hints:
        every = (*by_name, *_LINES, *_SQUARES, *_OTHER_SQUARES)
    else:
        every = (*by_name, *_SQUARES, *_LINES, *_OTHER_SQUARES)
    return tuple(dict.fromkeys(each for each in every if each))


def _is_height(value: ModelInput, axis: int) -> bool:
    words = _words(value.symbol(axis))
    if words & {"height", "h"} or words & {"width", "w"}:
        return bool(words & {"height", "h"})
    rank = len(value.dimensions)
    if rank == _IMAGE_RANK:
        return axis == (1 if _channel_axis(value) == _IMAGE_RANK - 1 else 2)
    return axis == rank - 2


def _other_side(value: ModelInput, axis: int) -> int | None:
    """Returns the fixed side of an image, if it is not this one."""
    if len(value.dimensions) != _IMAGE_RANK:
        return None
    sides = {1, 2} if _channel_axis(value) == _IMAGE_RANK - 1 else {2, 3}
    others = [value.dimensions[side] for side in sides - {axis}]
    return others[0] if axis in sides else None


def _beside(side: int) -> LikelySize:
    """Returns the open side of an image with one fixed side: a text line if that is low."""
    lowest, line = 100, {32: 320, 48: 320}
    first = line.get(side, 4 * side) if side < lowest else side
    sides = (first, *(pair[1] for pair in (*_SQUARES, *_OTHER_SQUARES)))
    return LikelySize(sides, f"the other side is {side}", f"image beside {side}")


# Lengths of sound and of anything else.


def _is_sound(value: ModelInput, axis: int, kind: ModelKind) -> bool:
    """Returns whether a length counts samples: of an input called so, of a model for sound, or of
    any signal, unless the model takes features or tokens."""
    is_float, last = "float" in value.dtype, value.dimensions[-1]
    rank, is_last = len(value.dimensions), axis == len(value.dimensions) - 1
    is_of_frames = not is_last and last is not None and last > _CHANNELS_OF_SOUND
    if re.search(_SOUND, value.name, re.IGNORECASE):
        return not is_of_frames
    channels = value.dimensions[-2] if rank > 1 else None
    is_flat = rank <= _MATRIX_RANK
    is_mono = channels is not None and channels <= _CHANNELS_OF_SOUND
    is_signal = is_last and (is_flat or is_mono)
    if kind.for_sound:
        return is_signal and (is_float or not value.dtype)
    is_alone = rank == 1 or _guess_size(value, 0).kind == "batch"
    is_other = kind.tokens or "eeg" in kind.evidence.hints
    return is_signal and is_alone and is_float and not is_other


def _sound(why: str, kind: ModelKind) -> LikelySize:
    if kind.state:
        return LikelySize(CHUNKS, f"{why}: a piece, as the model keeps a state", "sound")
    rate = kind.evidence.sample_rate
    sizes = tuple(dict.fromkeys((rate, *CLIPS) if rate else CLIPS))
    source = f"one second of sound: {kind.evidence.why['sample_rate']}" if rate else ""
    return LikelySize(sizes, why, "sound", source)


def _length(value: ModelInput, why: str, evidence: Evidence) -> LikelySize:
    if evidence.frames and "float" in value.dtype:
        sizes = tuple(dict.fromkeys((evidence.frames, *LENGTHS)))
        return LikelySize(sizes, why, "length", evidence.why["frames"])
    most = evidence.max_length
    if not most:
        return LikelySize(LENGTHS, why, "length")
    fitting = tuple(size for size in LENGTHS if size <= most)
    if most < LENGTHS[0]:
        return LikelySize(
            (most, *fitting), why, "length", f"the most: {evidence.why['max_length']}"
        )
    return LikelySize(fitting, why, "length")
