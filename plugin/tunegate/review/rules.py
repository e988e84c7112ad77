"""Merges two configurations: for each section the value that counts, as its keys declare.

An ordered key has the stricter value, whoever wrote it. Every other key has the base's.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from tunegate import config
from tunegate.artifacts.changes import Effect, PolicyChange
from tunegate.config_key import Strictness, keys_of


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one section. `ordered` keys have an order. `filled` keys may be set by the head
    if the base has none."""

    ordered: Mapping[str, Strictness] = {}
    filled: frozenset[str] = frozenset()


def rules_of(section: type[msgspec.Struct]) -> Rules:
    """Returns the rules that the keys of a section declare."""
    keys = {each.field: each.key for each in keys_of(section)}
    return Rules(
        ordered={name: key.stricter for name, key in keys.items() if key.stricter},
        filled=frozenset(name for name, key in keys.items() if key.may_fill),
    )


GATE = rules_of(config.GateConfig)
# Keys that decide how much is tuned, or which records are used, have no order: a base below its
# best lets a slower head pass.
BUDGET = rules_of(config.BudgetConfig)
CACHE = rules_of(config.CacheConfig)
TARGET = rules_of(config.TargetConfig)
ACCURACY = rules_of(config.AccuracyConfig)
METRIC_COMMAND = rules_of(config.MetricCommandConfig)
"""Two bounds on one command have an order. Of two commands the base's runs."""
OBJECTIVE = rules_of(config.ObjectiveConfig)


# Two versions of one section, merged into the one that judges.

_Section = TypeVar("_Section", bound=msgspec.Struct)


def merged_section(base: _Section, head: _Section, rules: Rules) -> _Section:
    """Returns the section that judges: the stricter value of an ordered key, else the base's."""
    values = {
        field.name: _counting(field.name, base, head, rules)
        for field in msgspec.structs.fields(base)
    }
    return msgspec.structs.replace(base, **values)


def section_changes(
    base: _Section, head: _Section, rules: Rules, section: str, **place: str
) -> Iterator[PolicyChange]:
    """Returns a change for every key whose values differ. `place` is the model or target."""
    for field in msgspec.structs.fields(base):
        old, new = getattr(base, field.name), getattr(head, field.name)
        if old != new:
            key = f"{section}.{field.encode_name}"
            effect = _effect(field.name, old, new, rules)
            yield PolicyChange(
                key=key,
                old=yaml_text(old),
                new=yaml_text(new),
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


# Three versions of one section: what the head left as it was where it branched off is as the base
# has it now, as after a merge.


def rebased_section(fork: _Section, base: _Section, head: _Section) -> _Section:
    """Returns the head's section on top of the base's: the keys that it changed since the fork."""
    own = {
        field.name: value
        for field in msgspec.structs.fields(head)
        if (value := getattr(head, field.name)) != getattr(fork, field.name)
    }
    return msgspec.structs.replace(base, **own)


def rebased_list(
    fork: Sequence[_Section], base: Sequence[_Section], head: Sequence[_Section], key: str
) -> tuple[_Section, ...]:
    """Returns the head's entries on top of the base's. Entries are the same by `key`; the head's
    own list counts where one of them is there twice."""
    if tuple(head) == tuple(fork):
        return tuple(base)
    was, now, own = ({getattr(entry, key): entry for entry in each} for each in (fork, base, head))
    if any(len(by_key) < len(each) for by_key, each in ((was, fork), (now, base), (own, head))):
        return tuple(head)
    result = {
        name: rebased_section(was[name], now[name], entry) if name in was and name in now else entry
        for name, entry in own.items()
        if name in now or entry != was.get(name)
    }
    entries = {**{name: entry for name, entry in now.items() if name not in was}, **result}
    if list(own) == list(was):
        names = [*filter(entries.__contains__, now), *(name for name in result if name not in now)]
        return tuple(entries[name] for name in names)
    names = list(result)
    for before, name in zip((None, *now), now, strict=False):
        if name in entries.keys() - result.keys():  # behind what it follows in the base
            names.insert(names.index(before) + 1 if before in names else 0, name)
    return tuple(entries[name] for name in names)


# Values of the configuration as its file writes them.


def yaml_text(value: object) -> str:
    """Returns the value in YAML's short form: `3`, `fail`, `[1, 128]`, or `not set` for None."""
    if value is None:
        return "not set"
    if isinstance(value, str):
        return value
    text = msgspec.json.encode(_shorten_number(msgspec.to_builtins(value))).decode()
    return text.replace('"', "").replace(",", ", ").replace(":", ": ")


def _shorten_number(value: object) -> object:
    """Returns a value, a whole number without its `.0`."""
    if isinstance(value, dict):
        return {key: _shorten_number(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_shorten_number(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
