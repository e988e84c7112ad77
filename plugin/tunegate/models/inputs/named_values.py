"""Values that an input gets for its name: speeds, rates, thresholds, lengths and counts. A caller
sets them by hand, and no distribution resembles them. Pure."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tunegate.artifacts.inputs import Columns, Constant, InputRule
from tunegate.models.narrow_types import dtype_named, kind_of
from tunegate.models.seeded_inputs import TensorLike

_MAX_NUMBERS = 4
"""An input with more numbers is data; a caller sets only a few by hand."""
_MAX_OTHERS = 128
"""A length or a count refers to one of the first inputs."""
_SAMPLE_RATE = 16000
_IMAGE_RANK = 4
_MATRIX_RANK = 2
_COLORS = frozenset({1, 3, 4})

OpenAxes = Mapping[str, Sequence[int]]
"""The axes that a model leaves open, by input name."""


class _Usual(NamedTuple):
    """The value people usually give an input of that name; `whole` if it is an integer."""

    names: str
    value: float
    why: str
    whole: int | None = None


_USUAL = (
    _Usual(r"sr|fs|sampl(e|ing)_?rate(_hz)?", _SAMPLE_RATE, "a sample rate", _SAMPLE_RATE),
    _Usual(r"f_?min|(min|low)_?freq(uency)?|f0_?min", 50.0, "the lowest frequency", 50),
    _Usual(r"f_?max|(max|high)_?freq(uency)?|f0_?max", 1100.0, "the highest frequency", 1100),
    _Usual(r"noise_?scale_?(w|dur(ation)?)|noise_?w", 0.8, "noise of durations, as in VITS"),
    _Usual(r"noise_?scale|noise_?level", 0.667, "a scale of noise, as in VITS"),
    _Usual(r"(iou|nms)(_?thr(esh(old)?)?)?", 0.45, "a threshold of overlap"),
    _Usual(r"(conf(idence)?|score)(_?thr(esh(old)?)?)?|thr(esh(old)?)?", 0.25, "a threshold"),
    _Usual(r"(voice|speech|vad)_?thr(esh(old)?)?", 0.5, "a threshold of speech"),
    _Usual(r"guidance(_?scale)?|cfg(_?(scale|strength|weight))?", 2.0, "a scale of guidance"),
    _Usual(r"temp(erature)?", 1.0, "a temperature: none", 1),
    _Usual(r"top_?p", 0.9, "a share of probability"),
    _Usual(r"(repetition|length|diversity)_?penalty", 1.0, "a penalty: none", 1),
    _Usual(r"dropout(_?(rate|prob|p))?", 0.0, "no dropout"),
    _Usual(r"pitch_?shift|semitones|transpose|f0_?up_?key", 0.0, "no shift of pitch", 0),
    _Usual(
        r"speed|tempo|pace|rate|(speak(ing)?|speech|talk(ing)?)_?rate|(length|duration|d)_?"
        r"(scale|control|factor)|speed_?(ratio|factor|scale)",
        1.0,
        "the usual speed",
        1,
    ),
    _Usual(
        r"((pitch|energy|volume|p|e)_?)?(scale(_?factor)?|control|gain|ratio|factor|zoom)|volume|"
        r"alpha|strength",
        1.0,
        "a factor: none",
        1,
    ),
    _Usual(r"(time|diffusion_?)_?steps?", 500.0, "a step of diffusion", 500),
    _Usual(r"(num|n)_?(inference_?)?steps|nfe(_?steps?)?|steps", 8.0, "a number of steps", 8),
    _Usual(r"max_?(new_?)?(tokens?|length)|max_?len", 32.0, "a number of tokens", 32),
    _Usual(r"min_?(length|len|tokens)|num_?beams|num_?return_?sequences", 1.0, "one", 1),
    _Usual(r"top_?k|max_?(det(ections)?|boxes|output.*)", 50.0, "a number of results", 50),
)
_FLAGS = (
    (r"(is_?)?train(ing)?(_?mode)?", 0, "no training"),
    (r"use_?(kv_?)?cache(_?branch)?", 1, "with a cache, as all tokens but the first have"),
)
_LISTS = {("scales", 3): ((0.667, 1.0, 0.8), "noise, speed and noise of durations, as in Piper")}
_LENGTHS = r"(.+_)?(len|length|lengths|lens)|(num|n)_?(frames|tokens|samples|timesteps)"
_COUNTS = r"(?:num|n|count)_?(?:of_)?(.+?)s?"
_IMAGE_SIZES = r"(im(age)?|img|orig(inal)?(_?target)?|target|input)_?(shape|sizes?)"
_SIDE = r"(.+_)?(width|height)s?"
_IDS = r"(s|speaker|spk|lang|language|style|voice|emotion|domain|accent|tone)_?(id|idx|index|s)?"


def named_rule(
    tensor: TensorLike, every: Sequence[TensorLike], open_axes: OpenAxes
) -> InputRule | None:
    """Returns the rule for an input with such a name, None for other names and for data. `every`
    are all inputs of the model: a length or a count refers to one of them."""
    kind = kind_of(dtype_named(tensor.dtype))
    if not 0 < math.prod(tensor.shape) <= _MAX_NUMBERS or kind == "O":
        return None
    name = words_of(tensor.name)
    rule = _size_rule(name, tensor, every, open_axes) if kind != "b" else None
    return rule or setting_rule(tensor)


def setting_rule(tensor: TensorLike) -> InputRule | None:
    """Returns the same for names of settings only, which depend on no other input."""
    kind = kind_of(dtype_named(tensor.dtype))
    if not 0 < math.prod(tensor.shape) <= _MAX_NUMBERS or kind == "O":
        return None
    name = words_of(tensor.name)
    if kind == "b":
        return _flag(name)
    return _list_rule(name, tensor) or _usual(name, is_whole=kind in "iu")


def words_of(name: str) -> str:
    """Returns the words of a name in lower case, joined by `_`: `inputs_length_scale` for
    `inputs.lengthScale:0`."""
    plain = re.sub(r":\d+$", "", name)
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain).casefold()
    return re.sub(r"[^a-z0-9]+", "_", spaced).strip("_")


def length_axis(tensor: TensorLike, open_axes: OpenAxes) -> int | None:
    """Returns the axis that a length counts: the last open one behind the batch, or the second if
    none is open."""
    rank = len(tensor.shape)
    behind = [axis for axis in open_axes.get(tensor.name, ()) if axis > 0]
    if behind:
        return behind[-1]
    return 1 if rank >= _MATRIX_RANK else None


def _flag(name: str) -> InputRule | None:
    flags = ((value, why) for names, value, why in _FLAGS if _has(name, names))
    return next((InputRule(Constant(value), why) for value, why in flags), None)


def _usual(name: str, *, is_whole: bool) -> InputRule | None:
    for each in _USUAL:
        if _has(name, each.names) and (each.whole is not None or not is_whole):
            value = each.whole if is_whole and each.whole is not None else each.value
            return InputRule(Constant(value), f"by its name: {each.why}")
    if is_whole and re.fullmatch(_IDS, name):
        return InputRule(Constant(0), "by its name: the first one")
    return None


def _has(name: str, names: str) -> bool:
    """Returns whether the name is one of these, or ends with one, as `input_speed`."""
    return re.fullmatch(rf"(?:(?:in|input|inputs|x|model|arg)_)?(?:{names})", name) is not None


def _list_rule(name: str, tensor: TensorLike) -> InputRule | None:
    numbers, why = _LISTS.get((name, math.prod(tensor.shape)), ((), ""))
    if not numbers or kind_of(dtype_named(tensor.dtype)) != "f":
        return None
    return InputRule(Columns(len(tensor.shape) - 1, tuple(map(Constant, numbers))), why)


def _size_rule(
    name: str, tensor: TensorLike, every: Sequence[TensorLike], open_axes: OpenAxes
) -> InputRule | None:
    """Returns the rule of a length, count or extent of another input."""
    others = [each for each in every[:_MAX_OTHERS] if each.name != tensor.name]
    if re.fullmatch(_LENGTHS, name) and kind_of(dtype_named(tensor.dtype)) in "iu":
        return _length(name, others, open_axes)
    if re.fullmatch(_IMAGE_SIZES, name) and tensor.shape[-1:] == (_MATRIX_RANK,):
        return _image_sides(tensor, others)
    side = re.fullmatch(_SIDE, name)
    if side is not None and kind_of(dtype_named(tensor.dtype)) in "iu":
        return _side(side[2], others)
    count = re.fullmatch(_COUNTS, name)
    if count is not None and kind_of(dtype_named(tensor.dtype)) in "iu":
        return _number(count[1], others)
    return None


def _length(name: str, inputs: Sequence[TensorLike], open_axes: OpenAxes) -> InputRule | None:
    """Returns the length of the input that it is named after, or of the first that has one."""
    of = re.sub(r"_?(len|length|lengths|lens)$", "", name)
    long = [each for each in inputs if _extent(each, open_axes) > 1]
    alike = [each for each in long if of and words_of(each.name).startswith(of)]
    for each in (*alike, *long):
        why = f"by its name: the length of {each.name}"
        return InputRule(Constant(_extent(each, open_axes)), why)
    return None


def _extent(tensor: TensorLike, open_axes: OpenAxes) -> int:
    axis = length_axis(tensor, open_axes)
    return 0 if axis is None else tensor.shape[axis]


def _image_sides(tensor: TensorLike, inputs: Sequence[TensorLike]) -> InputRule | None:
    for name, sides in _images(inputs):
        parts = tuple(Constant(side) for side in sides)
        return InputRule(Columns(len(tensor.shape) - 1, parts), f"by its name: the sides of {name}")
    return None


def _side(which: str, inputs: Sequence[TensorLike]) -> InputRule | None:
    """Returns the width or the height of the first image."""
    for name, (height, width) in _images(inputs):
        side = width if which == "width" else height
        return InputRule(Constant(side), f"by its name: the {which} of {name}")
    return None


def _images(tensors: Sequence[TensorLike]) -> Iterator[tuple[str, Sequence[int]]]:
    """Yields the images with their height and width."""
    for tensor in tensors:
        if len(tensor.shape) == _IMAGE_RANK:
            is_last = tensor.shape[3] in _COLORS and tensor.shape[1] not in _COLORS
            yield tensor.name, tensor.shape[1:3] if is_last else tensor.shape[2:4]


def _number(of: str, inputs: Sequence[TensorLike]) -> InputRule | None:
    """Returns the size of the first axis of the input whose name contains the counted thing."""
    stem = of.rstrip("s")
    for each in _containing(stem, inputs):
        batch = len(each.shape) > 1 and each.shape[0] == 1
        why = f"by its name: how many {each.name} has"
        return InputRule(Constant(each.shape[1 if batch else 0]), why)
    return None


def _containing(stem: str, inputs: Sequence[TensorLike]) -> Iterator[TensorLike]:
    for each in inputs:
        if each.shape and stem and stem in words_of(each.name):
            yield each
