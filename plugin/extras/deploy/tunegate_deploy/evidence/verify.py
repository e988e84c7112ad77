"""`tunegate verify`: does evidence show that a model may be deployed? Needs no network."""

from __future__ import annotations

import datetime
import hashlib
import sys
from pathlib import Path

import msgspec

from tunegate.cli.handlers.reporting import write_line
from tunegate.errors import ModelError
from tunegate.models.file_pair import data_digest
from tunegate.regular_files import read_regular, where_it_leads
from tunegate.report.escape import visible
from tunegate.system.clock import SystemClock
from tunegate.system.git.content import MAX_POINTER_BYTES, is_odd_lfs_pointer, lfs_pointer
from tunegate.system.onnx_scan import data_files
from tunegate_deploy.command import VerifyOptions
from tunegate_deploy.evidence.envelope import (
    EvidenceError,
    read_public_key,
    require_moderate,
    verify_signature,
)
from tunegate_deploy.evidence.own_gate import OwnGate, require_as_strict
from tunegate_deploy.evidence.policy import EvidencePolicy, check_statement, read_policy
from tunegate_deploy.evidence.sigstore_bundle import is_bundle, verified_bundle
from tunegate_deploy.evidence.statement import JudgedCell

_LONGEST = 400


def run(options: VerifyOptions) -> int:
    """Returns 0 where the evidence is signed, fresh, about this model and by the policy's rules.
    Raises EvidenceError with the one reason for which it is not."""
    policy = read_policy(options.policy)
    cells = shown_by(options.evidence, policy, options.model, options.production)
    if options.settings.as_json:
        write_line(msgspec.json.encode(cells).decode())
    for each in cells:
        line = f"{each.model} on {each.target}: {each.status}, {each.reason}"
        sys.stderr.write(f"{visible(line, _LONGEST)}\n")
    if options.production is None:
        sys.stderr.write(
            "not checked against what is in production, so an older pass counts too: give "
            "--production\n"
        )
    return 0


def shown_by(
    evidence: Path,
    policy: EvidencePolicy,
    model: Path,
    production: Path | None,
    own: OwnGate | None = None,
) -> tuple[JudgedCell, ...]:
    """Returns the findings by which an evidence shows that the model may be deployed in place of
    that in production, and would pass the gate `own`. Raises EvidenceError, ModelError."""
    keys = tuple(map(read_public_key, policy.keys))
    try:
        require_moderate(evidence.stat().st_size)
        content = read_regular(where_it_leads(evidence))
        signed = (
            verified_bundle(content, policy.identities, Path(policy.trusted_root))
            if is_bundle(content)
            else verify_signature(content, keys)
        )
    except OSError as error:
        raise EvidenceError(f"{evidence}: cannot be read ({error.strerror}).") from error
    except EvidenceError as error:
        raise EvidenceError(f"{evidence}: {error}") from error
    cells = check_statement(
        signed,
        policy,
        head=file_digests(model),
        base=None if production is None else file_digests(production),
        now=datetime.datetime.fromtimestamp(SystemClock().time(), tz=datetime.UTC),
    )
    if own is not None:
        require_as_strict(signed.predicate, cells, own)
    return cells


def file_digests(model: Path) -> dict[str, str]:
    """Returns the SHA-256 of a model's file and of each of its data files, by name, the model's
    first. The model is where a link leads, and its data lies there. Raises ModelError for a file
    that is no model, for data that is missing, behind a link, or another one beside the link, and
    for a Git LFS pointer in place of a file: it would be unclear what is deployed."""
    link, model = model, where_it_leads(model)
    try:
        body = read_regular(model)
        _require_content("it", body)
        beside = data_files(body)
        for name in beside:
            _require_one(name, link.parent / name, model.parent / name)
            if (file := model.parent / name).is_file() and file.stat().st_size <= MAX_POINTER_BYTES:
                _require_content(f"its data file {name}", read_regular(file))
    except OSError as error:
        raise ModelError(f"{model}: cannot be read ({error.strerror}).") from error
    except ModelError as error:
        raise ModelError(f"{model}: {error}.") from error
    digest = hashlib.sha256(body).hexdigest()
    return {model.name: digest, **{name: data_digest(model, name) for name in beside}}


def _require_one(name: str, beside_link: Path, beside_file: Path) -> None:
    """A runtime may look for data beside a link to the model."""
    if beside_link.exists() and not (beside_file.exists() and beside_link.samefile(beside_file)):
        raise ModelError(f"its data file {name} beside the link is not the one beside the model")


def _require_content(what: str, content: bytes) -> None:
    if lfs_pointer(content) is not None or is_odd_lfs_pointer(content):
        raise ModelError(f"{what} is only a Git LFS pointer. Run git lfs pull")
