"""The sizes that `tunegate init` writes: one for each symbol, with why it is what it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from tunegate.artifacts.outlines import ModelInput
from tunegate.edges.models.finder import FoundModel
from tunegate.edges.models.sizes.guessed_sizes import GuessedSize
from tunegate.edges.models.sizes.likely_size import is_generated
from tunegate.input_shapes import is_symbol

_HEAD = """\

# The sizes of dynamic dimensions, by symbol, for all models. Those that are guessed: put what you
# deploy with. An entry of models may have its own.
dims:
"""


def shared_sizes(models: Sequence[FoundModel]) -> dict[str, GuessedSize]:
    """Returns the symbols with the same size in every model that has them."""
    found: dict[str, list[GuessedSize]] = {}
    for guess in (guess for model in models for guess in model.guesses):
        if _is_written(guess) and not is_generated(guess.symbol):
            found.setdefault(guess.symbol, []).append(guess)
    return {
        symbol: guesses[0]
        for symbol, guesses in sorted(found.items())
        if len({guess.size for guess in guesses}) == 1
    }


def shared_text(shared: Mapping[str, GuessedSize]) -> str:
    """The key `dims` of the file; '' where there is nothing to share."""
    if not shared:
        return ""
    return _HEAD + "".join(f"{line}\n" for line in _dims(shared, "  "))


def entry_lines(model: FoundModel, shared: Mapping[str, GuessedSize]) -> Iterator[str]:
    """The keys `dims` and `inputs` of an entry."""
    own = {
        guess.symbol: guess
        for guess in model.guesses
        if _is_written(guess) and guess.symbol not in shared
    }
    if own:
        yield "    dims:"
        yield from _dims(own, "      ")
    shapes = [*_whole_shapes(model)]
    if shapes:
        yield "    inputs:"
        yield from shapes


def _is_written(guess: GuessedSize) -> bool:
    """A sum of others follows from these, whatever they are changed to."""
    return is_symbol(guess.symbol) and not guess.is_sum


def _dims(sizes: Mapping[str, GuessedSize], indent: str) -> Iterator[str]:
    for symbol, guess in sizes.items():
        yield f"{indent}{quoted(symbol)}: {guess.size}  # guessed: {guess.why}"


def _whole_shapes(model: FoundModel) -> Iterator[str]:
    """The inputs that have dimensions without a name."""
    for value in model.inputs or ():
        guesses = [guess for guess in model.guesses if guess.input == value.name]
        unnamed = [guess.why for guess in guesses if not is_symbol(guess.symbol)]
        if unnamed or not value.is_ranked:
            why = "; ".join(dict.fromkeys(unnamed)) or "the model does not say how many dimensions"
            shape = ", ".join(map(str, _shape(value, guesses)))
            yield f"      {quoted(value.name)}: [{shape}]  # guessed: {why}"


def _shape(value: ModelInput, guesses: Sequence[GuessedSize]) -> list[int]:
    sizes = {guess.axis: guess.size for guess in guesses}
    if not value.is_ranked:
        return [size for _, size in sorted(sizes.items())] or [1]
    return [sizes[axis] if size is None else size for axis, size in enumerate(value.dimensions)]


def quoted(text: str) -> str:
    """YAML takes JSON strings; a name may hold anything."""
    return json.dumps(text, ensure_ascii=False)
