"""Enough of IAM's evaluation to test a policy: a deny wins, then an allow, else nothing is
allowed. What it does not know it refuses to judge."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Any

Context = Mapping[str, str]
"""Condition keys of a request; a key that is not there was not given."""


def is_allowed(
    policies: Iterable[Mapping[str, Any]], action: str, resource: str, context: Context
) -> bool:
    statements = [s for policy in policies for s in policy["Statement"]]
    applying = [s for s in statements if _applies(s, action, resource, context)]
    effects = {s["Effect"] for s in applying}
    return "Allow" in effects and "Deny" not in effects


def may_assume(trust: Mapping[str, Any], subject: str, audience: str = "sts.amazonaws.com") -> bool:
    """Whether a GitHub token with this `sub` may take a role."""
    host = "token.actions.githubusercontent.com"
    context = {f"{host}:sub": subject, f"{host}:aud": audience}
    return any(
        s["Effect"] == "Allow" and _holds(s.get("Condition", {}), context)
        for s in trust["Statement"]
    )


def _applies(statement: Mapping[str, Any], action: str, resource: str, context: Context) -> bool:
    return (
        _matches(statement["Action"], action)
        and _matches(statement["Resource"], resource)
        and _holds(statement.get("Condition", {}), context)
    )


def _matches(patterns: str | list[str], text: str) -> bool:
    return any(fnmatch.fnmatchcase(text, p.replace("[", "[[]")) for p in _many(patterns))


def _holds(condition: Mapping[str, Mapping[str, Any]], context: Context) -> bool:
    return all(
        _test(operator, context.get(key), _many(wanted))
        for operator, keys in condition.items()
        for key, wanted in keys.items()
    )


def _test(operator: str, given: str | None, wanted: list[str]) -> bool:
    match operator:
        case "Null":
            return (given is None) == (wanted == ["true"])
        case "Bool" | "StringEquals":
            return given in wanted
        case "StringLike":
            return given is not None and _matches(wanted, given)
        case "ArnNotLike":
            return given is None or not _matches(wanted, given)
        case _:
            message = f"unknown condition operator {operator}"
            raise ValueError(message)


def _many(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
