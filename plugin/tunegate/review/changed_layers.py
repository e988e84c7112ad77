"""How a change of a graph touches its layers: shapes, attributes and operators before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tunegate.artifacts.changes import LayerChange

Facts = Mapping[str, str]
_OPERATOR = "operator"
_NONE = "none"
_MAX_NAME, _MAX_TEXT = 120, 300
"""The most characters of a line. Names and attributes come from a pull request."""


def changed_layers(
    before: Mapping[str, Facts], after: Mapping[str, Facts]
) -> tuple[LayerChange, ...]:
    """Returns a line for each layer that differs, in the order of the head, then for those that are
    gone. Layers match by name, so an export that renames all of them changes all."""
    return tuple(_changes(before, after))


def _changes(before: Mapping[str, Facts], after: Mapping[str, Facts]) -> Iterator[LayerChange]:
    for name, facts in after.items():
        old = before.get(name)
        if old is None:
            yield _change(name, f"new: {_layer_words(facts)}")
        elif old != facts:
            yield _change(name, _difference(old, facts))
    for name, facts in before.items():
        if name not in after:
            yield _change(name, f"gone: {_layer_words(facts)}")


def _change(name: str, text: str) -> LayerChange:
    return LayerChange(name[:_MAX_NAME], text[:_MAX_TEXT])


def _difference(old: Facts, new: Facts) -> str:
    """Returns a difference such as `Conv: weights 16x3x1x1 → 16x3x5x5, kernel_shape 1,1 → 5,5`."""
    operator = new.get(_OPERATOR, "")
    if old.get(_OPERATOR) != operator:
        operator = f"{old.get(_OPERATOR, _NONE)} → {operator}"
    changed = [
        f"{name} {old.get(name, _NONE)} → {new.get(name, _NONE)}"
        for name in dict.fromkeys((*old, *new))
        if name != _OPERATOR and old.get(name) != new.get(name)
    ]
    return f"{operator}: {', '.join(changed)}" if changed else operator


def _layer_words(facts: Facts) -> str:
    rest = ", ".join(f"{name} {text}" for name, text in facts.items() if name != _OPERATOR)
    operator = facts.get(_OPERATOR, "")
    return f"{operator} ({rest})" if rest else operator
