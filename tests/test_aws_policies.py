"""The policies of docs/aws say who may do what: every principal on every part of every zone."""

import fnmatch
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "aws"
FILLED = {
    "BUCKET": "acme",
    "ACCOUNT": "123456789012",
    "OWNER-NUMBER": "12",
    "NUMBER": "34",
    "ORG": "o",
    "REPO": "r",
    "USER": "ada",
}
ZONES = ("main", "rel", "team/x", "pr/o/r/7", "pr/other/repo/1", "dev/ada", "dev/bob")
PARTS = ("seg", "pack", "idx", "cold", "HEAD", "history")
ROLES = ("pull-request", "main", "compactor", "promoter", "developer")
READS = {
    "pull-request": {"main", "rel", "pr/o/r/7"},
    "main": {"main", "rel", "pr/o/r/7"},
    "compactor": set(ZONES),
    "promoter": {"main", "rel"},
    "developer": {"main", "rel", "dev/ada"},
}
CREATES_SEGMENTS = {
    "pull-request": {"pr/o/r/7"},
    "main": {"main"},
    "promoter": {"rel"},
    "developer": {"dev/ada"},
}


def load(name: str) -> dict[str, Any]:
    text = (FOLDER / f"{name}.json").read_text()
    for placeholder, value in FILLED.items():
        text = text.replace(placeholder, value)
    policy: dict[str, Any] = json.loads(text)
    return policy


def allowed(role: str, action: str, key: str, **context: str) -> bool:
    given = {
        "aws:SecureTransport": "true",
        "aws:PrincipalArn": f"arn:aws:iam::123456789012:role/tunegate-{role}",
        **{name.replace("__", ":").replace("_", "-"): value for name, value in context.items()},
    }
    policies = [load("bucket-policy"), load(f"role-{role}")]
    resource = "arn:aws:s3:::acme" + (f"/{key}" if key else "")
    return is_allowed(policies, action, resource, given)


def key_of(zone: str, part: str) -> str:
    if part == "history":
        return f"ms1/z/{zone}/history/x"
    return f"ms1/z/{zone}/g/0123456789abcdef/" + (part if part == "HEAD" else f"{part}/x")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("part", PARTS)
def test_who_may_do_what(role: str, part: str) -> None:
    compactor = role == "compactor"
    for zone in ZONES:
        key = key_of(zone, part)
        assert allowed(role, "s3:GetObject", key) == (zone in READS[role])
        creates = (
            part in {"pack", "idx", "cold"}
            if compactor
            else part in {"seg", "history"} and zone in CREATES_SEGMENTS[role]
        )
        new = allowed(role, "s3:PutObject", key, s3__if_none_match="*")
        assert new == (creates or (compactor and part == "HEAD"))
        assert allowed(role, "s3:PutObject", key) == (compactor and part == "HEAD")
        removes = compactor and part not in {"HEAD", "history"}
        assert allowed(role, "s3:DeleteObject", key) == removes


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("zone", ZONES)
def test_who_may_list_what(role: str, zone: str) -> None:
    prefix = f"ms1/z/{zone}/g/0123456789abcdef/seg/"
    assert allowed(role, "s3:ListBucket", "", s3__prefix=prefix) == (zone in READS[role])
    assert not allowed(role, "s3:ListBucket", "", s3__prefix="")


def test_nothing_goes_without_tls() -> None:
    key = key_of("main", "seg")
    assert allowed("main", "s3:GetObject", key)
    assert not allowed("main", "s3:GetObject", key, aws__SecureTransport="false")


@pytest.mark.parametrize(
    ("subject", "roles"),
    [
        ("repo:o/r:pull_request", {"pull-request"}),
        ("repo:o/r:ref:refs/heads/main", {"main"}),
        ("repo:o/r:ref:refs/heads/feature", set()),
        ("repo:o/r:ref:refs/tags/main", set()),
        ("repo:o/r:environment:compactor", {"compactor"}),
        ("repo:o/r:environment:release", {"promoter"}),
        ("repo:o/r:ref:refs/heads/gh-readonly-queue/main/pr-7-0123", {"pull-request"}),
        ("repo:o@12/r@34:pull_request", {"pull-request"}),
        ("repo:o@12/r@34:ref:refs/heads/gh-readonly-queue/main/pr-7-0123", {"pull-request"}),
        ("repo:o@12/r@34:ref:refs/heads/main", {"main"}),
        ("repo:o@12/r@34:environment:compactor", {"compactor"}),
        ("repo:o@12/r@34:environment:release", {"promoter"}),
        ("repo:o@12/r@35:ref:refs/heads/main", set()),
        ("repo:o@13/r@34:ref:refs/heads/main", set()),
        ("repo:evil/r:pull_request", set()),
        ("repo:o/r2:ref:refs/heads/main", set()),
    ],
)
def test_which_job_may_take_which_role(subject: str, roles: set[str]) -> None:
    trusts = {role: load(f"trust-{role}") for role in ROLES if role != "developer"}
    assert {role for role, trust in trusts.items() if may_assume(trust, subject)} == roles
    assert not any(may_assume(trust, subject, "another audience") for trust in trusts.values())


def test_the_files_fit_what_aws_takes() -> None:
    assert len((FOLDER / "bucket-policy.json").read_text()) < 20 * 1024
    for role in ROLES:
        assert len((FOLDER / f"role-{role}.json").read_text()) < 10_240


def test_the_evaluator_refuses_what_it_does_not_know() -> None:
    statement = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    odd = {"Statement": [{**statement, "Condition": {"IpAddress": {"aws:SourceIp": "::1"}}}]}
    with pytest.raises(ValueError, match="IpAddress"):
        is_allowed([odd], "s3:GetObject", "x", {})


# Enough of IAM's evaluation to test a policy: a deny wins, then an allow, else nothing is allowed.
# What it does not know it refuses to judge.

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
    """Returns True where a GitHub token with this `sub` may take a role."""
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
