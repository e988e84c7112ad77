"""`tunegate deploy-gate`: compares what is in production with what would be deployed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tunegate import pipeline
from tunegate.artifacts.changes import ChangeSet, ModelChange, ModelInput, Revisions, Side
from tunegate.artifacts.verdicts import Report, Status
from tunegate.cli.handlers.compare import artifacts_report, built_sides
from tunegate.cli.handlers.compare_models import (
    Artifact,
    Artifacts,
    Model,
    against,
    comparison_config,
    models_report,
    pair_files,
    require_sizes,
)
from tunegate.cli.handlers.reporting import finish
from tunegate.cli.parse import suggestion
from tunegate.config import Config, ModelConfig
from tunegate.errors import ConfigError
from tunegate.models.model_inputs import inputs_of_file
from tunegate.report.escape import visible
from tunegate.review.globs import literal
from tunegate.review.side_settings import settings_of_sides
from tunegate.system.output.directory import OutputDirectory, judged_output
from tunegate.system.output.temporary_folder import TemporaryFolder
from tunegate_deploy.command import DeployGateOptions
from tunegate_deploy.deployable import require_usable
from tunegate_deploy.evidence.envelope import EvidenceError
from tunegate_deploy.evidence.own_gate import OwnGate
from tunegate_deploy.evidence.policy import read_policy
from tunegate_deploy.evidence.verify import shown_by
from tunegate_deploy.model_sources.addressed_model import AddressedModel, MovableModel
from tunegate_deploy.model_sources.download_limits import DownloadLimits, within_limits
from tunegate_deploy.model_sources.fetched_model import FetchedModel, fetched_model
from tunegate_deploy.model_sources.open_address import OpenedAddress, open_address
from tunegate_deploy.model_sources.source_settings import SourceSettings

_SECONDS_PER_MINUTE = 60
_LONGEST = 400


def run(options: DeployGateOptions) -> int:
    """Downloads both models, pinned to what their addresses name now, and does what `compare` does.
    A name is moved only after a pass."""
    settings = options.settings
    config = _limit_targets(comparison_config(settings, "", {}), options.target)
    places = SourceSettings(endpoint_url=config.cache.endpoint_url, region=config.cache.region)
    production = open_address(options.production, places)
    candidate = open_address(options.candidate, places)
    movable = _movable(production.model, candidate.model) if options.promote else None
    limits = DownloadLimits(seconds=options.download_minutes * _SECONDS_PER_MINUTE)
    with (
        judged_output(settings.out, "deploy-gate") as out,
        TemporaryFolder() as scratch,
    ):
        out.forget(since="plan")
        base = _fetch(production, Path(scratch, "production"), limits)
        head = _fetch(candidate, Path(scratch, "candidate"), limits)
        report = _report(options, config, base, head, out)
        exit_code = finish(report, settings)
        if movable is not None:
            status = report.verdict.status
            move_after_pass(movable, candidate.model, head.path, status, limits)
    return exit_code


def _movable(production: AddressedModel, candidate: AddressedModel) -> MovableModel:
    if not isinstance(production, MovableModel):
        message = (
            f"{production.address}: nothing that --promote could move. Name an alias of MLflow, "
            f"a tag of a registry or a key of a bucket as --production."
        )
        raise ConfigError(message)
    production.require_movable_to(candidate)
    return production


def _fetch(opened: OpenedAddress, into: Path, limits: DownloadLimits) -> FetchedModel:
    found = fetched_model(opened.model, into, limits, opened.sha256)
    pin = found.pin
    said = f"{pin.address}: {pin.version + ', ' if pin.version else ''}sha256 {pin.sha256[:12]}"
    sys.stderr.write(f"{into.name}: {said}\n")
    return found


def _report(
    options: DeployGateOptions,
    config: Config,
    base: FetchedModel,
    head: FetchedModel,
    out: OutputDirectory,
) -> Report:
    settings = options.settings
    model = ModelConfig(path=literal(head.path.name), inputs=dict(options.shapes))
    config = msgspec.structs.replace(config, models=(model,))
    revisions = Revisions(
        base=base.pin.sha256,
        head=head.pin.sha256,
        reason="what the addresses named",
        pins=(base.pin, head.pin),
    )
    if base.pin.sha256 == head.pin.sha256:
        changes = ChangeSet(revisions=revisions, models=(), unchanged=(head.path.name,))
        return pipeline.nothing_to_do(config, changes, out.path)
    if shown := shown_by_evidence(options, config, base, head):
        changes = ChangeSet(revisions=revisions, models=(), unchanged=(), notes=(shown,))
        return pipeline.nothing_to_do(config, changes, out.path)
    config = require_usable(config, (base, head), trust_compiled=options.trust_compiled)
    both = against(_side(base), _side(head))
    if isinstance(both, Artifacts):
        return artifacts_report(settings, config, built_sides(both.base, both.head), revisions, out)
    models = [side.file for side in (both.base, both.head) if isinstance(side, Model)]
    require_sizes(models, dict(options.shapes))
    return models_report(settings, config, both, pair_files(both, revisions), out)


def shown_by_evidence(
    options: DeployGateOptions, config: Config, base: FetchedModel, head: FetchedModel
) -> str:
    """Returns the line that stands for a measurement; empty where none was given, or it does not
    show that the candidate may replace what is in production: then that is told, and measured. It
    must answer what this gate asks: a pass on each of its targets, at its sizes, by rules as
    strict."""
    if options.evidence is None:
        if options.evidence_policy is not None:
            raise ConfigError("--evidence-policy is for an evidence. Name it with --evidence.")
        return ""
    if options.evidence_policy is None:
        raise ConfigError("--evidence needs --evidence-policy, which says whose evidence counts.")
    if base.path.is_dir() or head.path.is_dir():
        raise ConfigError("--evidence is about models. Leave it out for compiled artifacts.")
    try:
        policy = read_policy(options.evidence_policy)
        own = OwnGate(
            gate=config.gate, targets=config.targets, shapes=_open_shapes(config, base, head)
        )
        cells = shown_by(options.evidence, policy, head.path, base.path, own)
    except EvidenceError as error:
        sys.stderr.write(f"{visible(f'evidence refused, so it is measured: {error}', _LONGEST)}\n")
        return ""
    told = "; ".join(f"{each.target}: {each.reason}" for each in cells)
    return f"what the evidence shows: {told}"


def _open_shapes(
    config: Config, base: FetchedModel, head: FetchedModel
) -> dict[str, tuple[int, ...] | None]:
    """Returns the shapes at which this gate would measure the inputs that the candidate leaves
    open, None for one of unknown size."""
    name, inputs = head.path.name, inputs_of_file(head.path) or ()
    change = ModelChange(
        path=name, kind="modified", change="unknown", base=None, head=None, targets=()
    )
    sides: dict[Side, Sequence[ModelInput] | None] = {
        "base": inputs_of_file(base.path),
        "head": inputs,
    }
    shapes = settings_of_sides(config, None, change, sides)["head"].shapes
    still_open = [each.name for each in inputs if not each.is_ranked or None in each.dimensions]
    return {**shapes, **{each: shapes.get(each) for each in still_open}}


def _side(fetched: FetchedModel) -> Model | Artifact:
    return Artifact(fetched.path) if fetched.path.is_dir() else Model(fetched.path)


def _limit_targets(config: Config, names: tuple[str, ...]) -> Config:
    """Returns the configuration with these targets only. Raises ConfigError for an unknown one."""
    known = {target.name: target for target in config.targets}
    for name in names:
        if name not in known:
            message = (
                f"--target {name}: the configuration has {', '.join(known)}."
                f"{suggestion(name, known)}"
            )
            raise ConfigError(message)
    kept = tuple(target for target in config.targets if not names or target.name in names)
    return msgspec.structs.replace(config, targets=kept)


def move_after_pass(
    production: MovableModel,
    candidate: AddressedModel,
    downloaded: Path,
    status: Status,
    limits: DownloadLimits,
) -> None:
    """Moves the name after a pass, whatever exit code the configuration gives other statuses.
    Raises what the name's server raises."""
    if status != "pass":
        sys.stderr.write(f"{production.address}: not moved, since this is no pass.\n")
        return
    moved = within_limits(
        lambda: production.move_to(candidate, downloaded), production.address, limits
    )
    sys.stderr.write(f"{production.address}: moved to {moved}.\n")
