"""Two versions of one section of the configuration, merged into the one that judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from tunegate.artifacts.changes import Effect, PolicyChange
from tunegate.config_key import Strictness
from tunegate.policy.written import written

_Section = TypeVar("_Section", bound=msgspec.Struct)


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one section. `ordered` are keys with an order; `filled` are keys that the head
    may set where the base has none."""

    ordered: Mapping[str, Strictness] = {}
    filled: frozenset[str] = frozenset()


def merged_section(base: _Section, head: _Section, rules: Rules) -> _Section:
    """The section that judges: the stricter value of an ordered key, else the base's."""
    values = {
        field.name: _counting(field.name, base, head, rules)
        for field in msgspec.structs.fields(base)
    }
    return msgspec.structs.replace(base, **values)


def section_changes(
    base: _Section, head: _Section, rules: Rules, section: str, **place: str
) -> Iterator[PolicyChange]:
    """A change for every key whose values differ. `place` is the model or target."""
    for field in msgspec.structs.fields(base):
        old, new = getattr(base, field.name), getattr(head, field.name)
        if old != new:
            key = f"{section}.{field.encode_name}"
            effect = _effect(field.name, old, new, rules)
            yield PolicyChange(
                key=key,
                old=written(old),
                new=written(new),
                effect=effect,
                counts="now" if effect == "tightened" else "once merged",
                **place,
            )


def _effect(name: str, old: object, new: object, rules: Rules) -> Effect:
    weight = rules.ordered.get(name)
    if weight is not None:
        is_stricter = weight(new) > weight(old)
    else:
        is_stricter = name in rules.filled and old is None
    has_order = weight is not None or (name in rules.filled and new is None)
    return "tightened" if is_stricter else "loosened" if has_order else "changed"


def _counting(name: str, base: _Section, head: _Section, rules: Rules) -> object:
    old, new = getattr(base, name), getattr(head, name)
    weight = rules.ordered.get(name)
    if weight is not None:
        return max(old, new, key=weight)
    return new if old is None and name in rules.filled else old
