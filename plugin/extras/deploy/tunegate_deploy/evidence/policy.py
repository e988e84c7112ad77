"""The policy for accepting evidence, and the check of a statement against it. Pure, except for
reading the file."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import msgspec

from tunegate.artifacts.changes import Side, path_of, without_upgrade
from tunegate.errors import ConfigError
from tunegate.regular_files import read_regular, where_it_leads
from tunegate.system.strict_yaml import YamlProblemError, read_yaml
from tunegate_deploy.evidence import own_gate
from tunegate_deploy.evidence.envelope import EvidenceError
from tunegate_deploy.evidence.sigstore_bundle import Identity
from tunegate_deploy.evidence.statement import JudgedCell, Statement, subject_name

_CLOCK_SKEW = datetime.timedelta(minutes=10)


class EvidencePolicy(
    msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True
):
    """The content of a policy file. `keys` are the public keys that may sign, `identities` the CI
    jobs, by the certificates and logs in the file `trusted-root`. `policy-digests` are the accepted
    rules of the gate: the `policyDigest` of reviewed evidence; if empty, all are. `gate` has keys
    of the gate that must have been as strict. `targets` must have been judged, and on one of the
    `devices`; if empty, any. `environment` has facts of the machine that must hold, by name."""

    keys: tuple[str, ...] = ()
    identities: tuple[Identity, ...] = ()
    trusted_root: str = ""
    max_age_days: Annotated[float, msgspec.Meta(gt=0)] = 30.0
    gate: Mapping[str, Any] = {}
    policy_digests: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    allow_waived: bool = False
    require_production: bool = False


def read_policy(path: Path) -> EvidencePolicy:
    """Returns the policy of a file. Raises ConfigError."""
    try:
        text = read_regular(where_it_leads(path)).decode()
        policy = msgspec.convert(read_yaml(text), EvidencePolicy)
        own_gate.ordered_keys(policy.gate)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}).") from error
    except (YamlProblemError, ValueError) as error:  # of UTF-8, of a type, of a key of the gate
        told = str(error).rstrip(".")
        raise ConfigError(
            f"{path}: {told}. The page of the extra deploy shows a policy."
        ) from error
    if not policy.keys and not policy.identities:
        raise ConfigError(f"{path}: it names nobody who may sign. Give keys or identities.")
    if policy.identities and not policy.trusted_root:
        raise ConfigError(
            f"{path}: identities need a trusted-root, the file of who vouches for them."
        )
    root = path.parent / policy.trusted_root
    return msgspec.structs.replace(policy, trusted_root=str(root))


def check_statement(
    statement: Statement,
    policy: EvidencePolicy,
    *,
    head: Mapping[str, str],
    base: Mapping[str, str] | None,
    now: datetime.datetime,
) -> tuple[JudgedCell, ...]:
    """Returns the findings on the model whose files `head` has, by the digests of their content.

    `head` and `base` are the SHA-256 of each file by name, the model's first; `base` is what is in
    production, None if that is not checked. Raises EvidenceError with the first reason why the
    statement does not show that this model may be deployed.
    """
    found = statement.predicate
    # Its age, rules and margin must be what the policy allows.
    _check_age(found.finished_at, policy.max_age_days, now)
    if policy.policy_digests and found.policy_digest not in policy.policy_digests:
        raise EvidenceError(
            f"judged by other rules ({found.policy_digest[:12]}) than the policy's."
        )
    own_gate.require_keys(found, policy.gate)
    if found.policy_fails:
        raise EvidenceError(
            "its change loosens the rules of its own gate, and failed for that. Merge the rules "
            "first, then gate it again."
        )
    for name, version in policy.environment.items():
        if (ran := found.environment.get(name, "unknown")) != version:
            raise EvidenceError(
                f"measured with {name} {ran}, and the policy asks for {version}. Gate it again."
            )
    # It must be about this model, whatever the order of its names.
    names = [each.name for each in statement.subject if each.name.startswith(("head:", "base:"))]
    if len(set(names)) < len(names):
        raise EvidenceError("names a file twice: it may be about another model.")
    paths = _paths_with(statement, "head", head)
    if not paths:
        judged = [each.name for each in statement.subject if each.name.startswith("head:")]
        name, digest = next(iter(head.items()))
        raise EvidenceError(
            f"about another model: {', '.join(judged) or 'none'} was judged, with other content "
            f"than {name} ({digest[:12]}) or its data files."
        )
    cells = tuple(each for each in found.findings if path_of(each.model) in paths)
    if not cells:
        raise EvidenceError(f"{paths[0]} was not compared with anything: there is no finding.")
    # It must compare this model with the one in production.
    if base is None and policy.require_production:
        raise EvidenceError(
            "not checked against what is in production, as the policy asks: give --production."
        )
    production = None if base is None else _paths_with(statement, "base", base)
    # Other packages are measured with the head's model on both sides.
    compared = [each for each in cells if without_upgrade(each.model) == each.model] or cells
    if production is not None and any(each.base_path not in production for each in compared):
        raise EvidenceError(
            f"{paths[0]} was compared with another model than what is in production: it is an "
            "older pass, or production has changed. Gate it again."
        )
    _check_cells(cells, policy)
    return cells


def _check_age(finished_at: str, max_days: float, now: datetime.datetime) -> None:
    try:
        finished = datetime.datetime.fromisoformat(finished_at)
    except ValueError as error:
        raise EvidenceError(f'"{finished_at}" is no time.') from error
    if finished.tzinfo is None:
        raise EvidenceError(f'"{finished_at}" has no time zone.')
    if finished > now + _CLOCK_SKEW:
        raise EvidenceError(f"made at {finished_at}, which has not come yet: look at the clocks.")
    age_days = (now - finished) / datetime.timedelta(days=1)
    if age_days > max_days:
        raise EvidenceError(
            f"made {age_days:.4g} days ago, and the policy allows {max_days:g} days. Gate it again."
        )


def _paths_with(statement: Statement, side: Side, files: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the paths at which a side had a model of this content, each data file under its name
    beside it; `files` are SHA-256 digests by name, the model's first."""
    known = {each.name: each.digest.get("sha256") for each in statement.subject}
    (_, model), *beside = files.items()
    prefix = subject_name(side, "")
    paths = [
        PurePosixPath(name.removeprefix(prefix))
        for name, digest in known.items()
        if name.startswith(prefix) and digest == model
    ]
    return tuple(
        str(path)
        for path in paths
        if all(
            known.get(subject_name(side, str(path.parent / name))) == digest
            for name, digest in beside
        )
    )


def _check_cells(cells: tuple[JudgedCell, ...], policy: EvidencePolicy) -> None:
    accepted = {"pass", "waived"} if policy.allow_waived else {"pass"}
    missing = set(policy.targets) - {each.target for each in cells}
    if missing:
        raise EvidenceError(f"not judged on {', '.join(sorted(missing))}, which the policy asks.")
    for each in cells:
        if policy.targets and each.target not in policy.targets:
            continue
        if policy.devices and each.device not in policy.devices:
            device = each.device or "an unknown device"
            raise EvidenceError(
                f"{each.model} on {each.target} was measured on {device}, and the policy asks for "
                f"{' or '.join(policy.devices)}."
            )
        if each.status not in accepted:
            raise EvidenceError(f"{each.model} on {each.target} is {each.status}: {each.reason}")
