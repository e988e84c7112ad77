"""The sizes of a model's open dimensions, from several levels of the configuration.

A later level overrides an earlier one. Inside a level, an input's own shape counts first, then
another input's shape with the same symbol, then `dims`. A symbol that is a sum of others, and that
nobody gives, is computed.
"""

import ast
import math
import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from tunegate.artifacts.changes import ModelInput

_NO_NAMES = frozenset({"", "?", "*", "-1", "None", "none", "null"})
"""Exporters write these where a dimension has no name. Two of them are not the same dimension."""


_SHOWN = 20
"""The most inputs that a message lists: a model may have thousands."""


class ShapeLevel(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes in one part of the configuration. `where` is that part, '' for the whole file."""

    where: str = ""
    dims: Mapping[str, int] = {}
    shapes: Mapping[str, tuple[int, ...]] = {}


class OpenDimension(msgspec.Struct, frozen=True, kw_only=True):
    """An open dimension and its size, None if nothing gives it. `source` is the key that does."""

    input: str
    axis: int
    symbol: str
    size: int | None
    source: str


class ResolvedShapes(msgspec.Struct, frozen=True, kw_only=True):
    """`shapes` are those of inputs with open dimensions or a given shape. `mistakes` are wrong
    entries, `gaps` missing ones: one line each, without the model's name."""

    shapes: dict[str, tuple[int, ...]]
    dimensions: tuple[OpenDimension, ...] = ()
    mistakes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """The mistakes, then the gaps."""
        return (*self.mistakes, *self.gaps)


def resolve_shapes(inputs: Sequence[ModelInput], levels: Sequence[ShapeLevel]) -> ResolvedShapes:
    """Returns the shapes by these levels, the weakest first."""
    # The strongest level with a size decides each open dimension. A level that does not fit an
    # input has none for it.
    misfits = [*_misfits(inputs, levels)]
    fitting = [_fitting(level, inputs) for level in levels]
    sized_levels = [_Level(level, inputs) for level in fitting]
    dimensions = _with_sums(
        [
            _resolve_size(value, axis, sized_levels)
            for value in inputs
            for axis, size in enumerate(value.dimensions)
            if size is None
        ]
    )
    # The whole shapes by these sizes, those that somebody wrote down first.
    sizes = {(dimension.input, dimension.axis): dimension.size for dimension in dimensions}
    shapes = {
        value.name: shape
        for value in inputs
        if (shape := _shape(value, sizes, fitting)) is not None
    }
    given_shapes = {
        name: shapes[name] for level in levels for name in level.shapes if name in shapes
    }
    contradictions = [problem for level in sized_levels for problem in level.contradictions()]
    return ResolvedShapes(
        shapes=given_shapes | shapes,
        dimensions=tuple(dimensions),
        mistakes=(
            *misfits,
            *contradictions,
            *_empty_input_problems(inputs, dimensions, given_shapes | shapes),
        ),
        gaps=(*_gaps(inputs, dimensions, levels),),
    )


def is_symbol(name: str) -> bool:
    """Returns whether a dimension's name is a symbol: two dimensions with it are the same."""
    return name not in _NO_NAMES


def takes(value: ModelInput, shape: tuple[int, ...]) -> bool:
    """Returns whether the input can have this shape."""
    return not _misfit(value, shape)


def symbols_of(inputs: Sequence[ModelInput]) -> frozenset[str]:
    """Returns the names that `dims` may use."""
    return frozenset(filter(is_symbol, (symbol for value in inputs for symbol in _symbols(value))))


def _symbols(value: ModelInput) -> Iterator[str]:
    for axis, size in enumerate(value.dimensions):
        if size is None:
            yield value.symbol(axis)


class _Level:
    """A level, with what its shapes say of symbols."""

    def __init__(self, level: ShapeLevel, inputs: Sequence[ModelInput]) -> None:
        self._level = level
        self._said: dict[str, dict[str, int]] = {}
        for value in inputs:
            for axis, size in enumerate(level.shapes.get(value.name, ())):
                symbol = value.symbol(axis) if value.is_ranked else ""
                if is_symbol(symbol) and value.dimensions[axis] is None:
                    key = self._key(f"inputs.{value.name}")
                    self._said.setdefault(symbol, {}).setdefault(key, size)

    def size(self, value: ModelInput, axis: int) -> tuple[int, str] | None:
        """Returns the size and the key that gives it."""
        shape, symbol = self._level.shapes.get(value.name), value.symbol(axis)
        if shape is not None:
            return shape[axis], self._key(f"inputs.{value.name}")
        for key, size in self._said.get(symbol, {}).items():
            return size, key
        if is_symbol(symbol) and symbol in self._level.dims:
            return self._level.dims[symbol], self._key("dims")
        return None

    def contradictions(self) -> Iterator[str]:
        for symbol, sizes_by_key in self._said.items():
            if symbol in self._level.dims:
                sizes_by_key = {**sizes_by_key, self._key("dims"): self._level.dims[symbol]}  # noqa: PLW2901
            if len({*sizes_by_key.values()}) > 1:
                sizes = ", ".join(f"{size} in {key}" for key, size in sizes_by_key.items())
                yield f'"{symbol}" has two sizes: {sizes}. Give it one.'

    def _key(self, key: str) -> str:
        return f"{self._level.where}.{key}" if self._level.where else key


def _resolve_size(value: ModelInput, axis: int, levels: Sequence[_Level]) -> OpenDimension:
    first = next((pair for level in reversed(levels) if (pair := level.size(value, axis))), None)
    size, source = first or (None, "")
    return OpenDimension(
        input=value.name, axis=axis, symbol=value.symbol(axis), size=size, source=source
    )


def _with_sums(dimensions: Sequence[OpenDimension]) -> list[OpenDimension]:
    sizes = {
        dimension.symbol: dimension.size
        for dimension in dimensions
        if dimension.size is not None and is_symbol(dimension.symbol)
    }
    return [
        msgspec.structs.replace(dimension, size=size, source="a sum of the others")
        if dimension.size is None and (size := computed_size(dimension.symbol, sizes)) is not None
        else dimension
        for dimension in dimensions
    ]


def _shape(
    value: ModelInput,
    sizes: Mapping[tuple[str, int], int | None],
    levels: Sequence[ShapeLevel],
) -> tuple[int, ...] | None:
    """Returns the full shape. None if it is static and nobody gave one, or if a size is missing."""
    shapes = [level.shapes[value.name] for level in levels if value.name in level.shapes]
    if not value.is_ranked or None not in value.dimensions:
        return shapes[-1] if shapes else None
    shape = [
        sizes[value.name, axis] if size is None else size
        for axis, size in enumerate(value.dimensions)
    ]
    return None if None in shape else tuple(size for size in shape if size is not None)


def _fitting(level: ShapeLevel, inputs: Sequence[ModelInput]) -> ShapeLevel:
    """Returns the level without impossible shapes."""
    by_name = {value.name: value for value in inputs}
    shapes = {
        name: shape
        for name, shape in level.shapes.items()
        if name in by_name and takes(by_name[name], shape)
    }
    return msgspec.structs.replace(level, shapes=shapes)


def _misfits(inputs: Sequence[ModelInput], levels: Sequence[ShapeLevel]) -> Iterator[str]:
    by_name = {value.name: value for value in inputs}
    has = ", ".join(sorted(by_name)[:_SHOWN])
    for level in levels:
        for name, shape in level.shapes.items():
            if name not in by_name:
                yield f"inputs.{name}: the model has no such input; it has {has}."
            elif problem := _misfit(by_name[name], shape):
                yield problem


def _misfit(value: ModelInput, shape: tuple[int, ...]) -> str:
    if not value.is_ranked:
        return ""
    if len(shape) != len(value.dimensions):
        return (
            f"inputs.{value.name} has {len(shape)} numbers, the model's has "
            f"{len(value.dimensions)} dimensions."
        )
    for axis, (number, size) in enumerate(zip(shape, value.dimensions, strict=True)):
        if size not in {None, number}:
            return f"inputs.{value.name}: axis {axis} is {size} in the model, not {number}."
    return ""


def _empty_input_problems(
    inputs: Sequence[ModelInput],
    dimensions: Sequence[OpenDimension],
    shapes: Mapping[str, tuple[int, ...]],
) -> Iterator[str]:
    """Yields mistakes that leave nothing to compute. A size of 0 is right for an input that may be
    empty, and wrong for a batch if it empties the only inputs."""
    zeros = [dimension for dimension in dimensions if dimension.size == 0]
    shapes_of_inputs = [shapes.get(value.name, value.dimensions) for value in inputs]
    sizes = [
        None if None in each else math.prod(size or 0 for size in each) for each in shapes_of_inputs
    ]
    is_left = any(size is None or size > 1 for size in sizes)
    if not zeros or is_left or not all(value.is_ranked for value in inputs):
        return
    first = zeros[0]
    name = f'"{first.symbol}"' if is_symbol(first.symbol) else f"axis {first.axis} of {first.input}"
    yield (
        f"{name} is 0 ({first.source}). No input has more than one number then, so nothing would "
        "be measured. Give it at least 1."
    )


def _gaps(
    inputs: Sequence[ModelInput],
    dimensions: Sequence[OpenDimension],
    levels: Sequence[ShapeLevel],
) -> Iterator[str]:
    """Yields a line for each symbol without a size, and for each input with unnamed open
    dimensions."""
    shaped_inputs = {name for level in levels for name in level.shapes}
    tensors = {value.name for value in inputs if not value.is_several} - shaped_inputs
    still_open = [
        dimension
        for dimension in dimensions
        if dimension.size is None and dimension.input in tensors
    ]
    places_of_symbols = defaultdict[str, list[str]](list)
    unnamed_axes = defaultdict[str, list[int]](list)
    for gap in still_open:
        if is_symbol(gap.symbol):
            places_of_symbols[gap.symbol].append(f"axis {gap.axis} of {gap.input}")
        else:
            unnamed_axes[gap.input].append(gap.axis)
    for symbol, places in places_of_symbols.items():
        yield (
            f'dimension "{symbol}" ({", ".join(places)}) is dynamic. '
            f"Give its size under dims: {symbol}: ... in tunegate.yaml."
        )
    for value in inputs:
        yield from _without_names(value.name, unnamed_axes[value.name])
        if not (value.is_ranked or value.is_several) and value.name not in shaped_inputs:
            yield f"input {value.name} has no shape in the model. {_whole_shape(value.name)}"


def _without_names(name: str, axes: Sequence[int]) -> Iterator[str]:
    if not axes:
        return
    numbers = ", ".join(map(str, axes))
    what = f"axis {numbers}" if len(axes) == 1 else f"axes {numbers}"
    are = "is" if len(axes) == 1 else "are"
    yield f"{what} of input {name} {are} dynamic without a name. {_whole_shape(name)}"


def _whole_shape(name: str) -> str:
    return f"Give the whole shape under inputs: {name}: [...] in tunegate.yaml."


# Sizes of dimensions that exporters name by a sum: `past_sequence_length + sequence_length`.

_LONGEST = 200
"""No exporter writes a longer sum."""
_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def computed_size(symbol: str, sizes: Mapping[str, int]) -> int | None:
    """Returns the size of a dimension named by a sum, by `sizes` of its symbols. None for another
    name, or if a symbol has no size."""
    if symbol.isidentifier():
        return _total(symbol, sizes)
    if len(symbol) > _LONGEST:
        return None
    try:
        term = ast.parse(symbol.strip(), mode="eval").body
        size = _value(term, sizes)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None
    least = 1 if isinstance(term, ast.Constant) else 0
    return size if size is not None and size >= least else None


def _total(symbol: str, sizes: Mapping[str, int]) -> int | None:
    """Returns `total_sequence_length`: a cache's past and the new tokens, as exporters of language
    models name it. Attention takes no other size."""
    new = symbol.removeprefix("total_")
    parts = sizes.get(new), sizes.get(f"past_{new}")
    return None if new == symbol or None in parts else sum(part or 0 for part in parts)


def _value(term: ast.expr, sizes: Mapping[str, int]) -> int | None:
    match term:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            return sizes.get(name)
        case ast.BinOp(left=left, op=kind, right=right):
            operation = _OPERATIONS.get(type(kind))
            ours, theirs = _value(left, sizes), _value(right, sizes)
            if operation is None or ours is None or theirs is None:
                return None
            return operation(ours, theirs)
        case _:
            return None
