"""Declares `tunegate deploy-gate`, `attest` and `verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Argument, Option, positive
from tunegate.cli.shared_options import (
    BudgetOptions,
    CacheAddress,
    InputShapes,
    Margin,
    MeasuringOptions,
    Options,
)


class DeployGateOptions(Options, frozen=True, kw_only=True):
    """The two addresses, and how their content is measured and judged."""

    budget: BudgetOptions = BudgetOptions()
    margin: Margin = Margin()
    cache: CacheAddress = CacheAddress()
    measuring: MeasuringOptions = MeasuringOptions()
    production: Annotated[
        str,
        Option(
            "what runs now: a path, https://, s3://, oci://, models:/ or hf://",
            "ADDRESS",
        ),
    ]
    candidate: Annotated[str, Option("what would be deployed: the same kinds", "ADDRESS")]
    target: Annotated[
        tuple[str, ...],
        Option(
            "gate on this target of the configuration alone; may be given for each",
            "NAME",
            is_repeated=True,
        ),
    ] = ()
    promote: Annotated[
        bool,
        Option(
            "after a pass, move the production's alias, tag or key to the candidate, unless it "
            "names something else by then"
        ),
    ] = False
    trust_compiled: Annotated[
        bool,
        Option("measure compiled artifacts from a network too: their code runs on this machine"),
    ] = False
    evidence: Annotated[
        Path | None,
        Option(
            "measure nothing where this evidence shows that the candidate passed against what is "
            "in production",
            "FILE",
            Path,
        ),
    ] = None
    evidence_policy: Annotated[
        Path | None, Option("the policy by which an evidence is accepted", "FILE", Path)
    ] = None
    download_minutes: Annotated[float, Option("cap on each download", "N", positive)] = 10.0
    shapes: InputShapes = ()


COMMAND = Command(
    name="deploy-gate",
    summary="gate what would be deployed against what is in production",
    options=DeployGateOptions,
    handler="tunegate_deploy.deploy_gate:run",
    examples=(
        "tunegate deploy-gate --production s3://models/prod.onnx --candidate build/new.onnx",
        "tunegate deploy-gate --production models:/asr@live --candidate models:/asr/7 --promote",
        "tunegate deploy-gate --production oci://ghcr.io/a/b:live --candidate oci://ghcr.io/a/b:2",
    ),
    judges=True,
    replaces_verdict=True,
)


class AttestOptions(Options, frozen=True, kw_only=True):
    """Settings that sign the verdict in `--out`."""

    unsigned: Annotated[
        bool,
        Option("sign nothing: statement.json, predicate.json, subjects.sha256 are for others"),
    ] = False
    cyclonedx: Annotated[
        bool, Option("write the verdict as evidence.cdx.json too, a CycloneDX model card")
    ] = False


ATTEST = Command(
    name="attest",
    summary="sign the verdict of a gate as evidence for other places",
    options=AttestOptions,
    handler="tunegate_deploy.evidence.attest:run",
    examples=("tunegate attest", "tunegate attest --unsigned --cyclonedx"),
)


class VerifyOptions(Options, frozen=True, kw_only=True):
    """The evidence, what it should be about, and by whose rules."""

    evidence: Annotated[Path, Argument("what tunegate attest wrote", "EVIDENCE", Path)]
    policy: Annotated[Path, Option("who may sign, and what counts", "FILE", Path)]
    model: Annotated[Path, Option("what would be deployed", "FILE", Path)]
    production: Annotated[
        Path | None, Option("what it must have been compared with", "FILE", Path)
    ] = None


VERIFY = Command(
    name="verify",
    summary="check that an evidence shows that a model may be deployed",
    options=VerifyOptions,
    handler="tunegate_deploy.evidence.verify:run",
    examples=(
        "tunegate verify evidence.json --policy policy.yaml --model new.onnx",
        "tunegate verify evidence.json --policy policy.yaml --model new.onnx --production now.onnx",
    ),
)
