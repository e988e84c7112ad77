"""`tunegate deploy-gate`, as the command line knows it."""

from __future__ import annotations

from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import (
    BudgetOptions,
    CacheAddress,
    InputShapes,
    Margin,
    MeasuringOptions,
    Options,
)
from tunegate.cli.values import positive


class DeployGateOptions(Options, frozen=True, kw_only=True):
    """The two addresses, and how what lies there is measured and judged."""

    budget: BudgetOptions = BudgetOptions()
    margin: Margin = Margin()
    cache: CacheAddress = CacheAddress()
    measured: MeasuringOptions = MeasuringOptions()
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
