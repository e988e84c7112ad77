from __future__ import annotations

import datetime
import hashlib
import typing
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.support import report_parts as parts
from tests.support.reports import make_report
from tests.support.small_onnx import conv_model, save

from tunegate.artifacts.changes import ModelPin
from tunegate.artifacts.verdicts import Status
from tunegate.cli.parse import parse
from tunegate.config import Config, ModelConfig, TargetConfig
from tunegate_cache.format.signing import public_text
from tunegate_deploy.command import DeployGateOptions
from tunegate_deploy.deploy_gate import move_after_pass, shown_by_evidence
from tunegate_deploy.evidence.envelope import signed
from tunegate_deploy.evidence.statement import JudgedCell, make_statement
from tunegate_deploy.model_sources.addressed_model import AddressedModel, MovableModel
from tunegate_deploy.model_sources.download_limits import ByteCount, DownloadLimits
from tunegate_deploy.model_sources.fetched_model import FetchedModel


class Alias:
    """A name that says where it was moved."""

    def __init__(self) -> None:
        self.moves = 0

    @property
    def shown(self) -> str:
        return "models:/asr@live"

    def resolve(self) -> str:
        return "version 1"

    def download(self, into: Path, count: ByteCount) -> Path:
        return into

    def require_movable_to(self, candidate: AddressedModel) -> None:
        """Any is right."""

    def move_to(self, candidate: AddressedModel, downloaded: Path) -> str:
        self.moves += 1
        return "version 2"


_: type[MovableModel] = Alias


@pytest.mark.parametrize("status", typing.get_args(Status))
def test_a_name_is_moved_after_a_pass_and_nothing_else(
    status: Status, capsys: pytest.CaptureFixture[str]
) -> None:
    alias = Alias()
    move_after_pass(alias, alias, Path(), status, DownloadLimits())
    assert alias.moves == (status == "pass")
    assert ("not moved" in capsys.readouterr().err) == (status != "pass")


def _fetched(path: Path) -> FetchedModel:
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return FetchedModel(path, ModelPin(address=str(path), version="", sha256=sha256), True)


@pytest.mark.parametrize(
    ("judged", "margin_percent", "told"),
    [
        ({"cpu": "pass", "gpu": "pass"}, 3.0, ""),
        ({"cpu": "pass"}, 3.0, "no pass on gpu"),
        ({"cpu": "pass", "gpu": "waived"}, 3.0, "no pass on gpu"),
        ({"cpu": "pass", "gpu": "pass"}, 4.0, "margin of 4%"),
    ],
)
def test_an_evidence_stands_for_a_measurement_where_it_answers_what_the_gate_asks(
    judged: dict[str, Status],
    margin_percent: float,
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With --promote a pass moves what is in production, so a waiver or another target's pass must
    not be one."""
    key = Ed25519PrivateKey.generate()
    base, head = (
        _fetched(save(conv_model(channels=8, out=8, size=8, seed=seed), tmp_path / f"{seed}.onnx"))
        for seed in (1, 2)
    )
    statement = make_statement(
        parts.verdict("pass", 0),
        make_report("measured").changes,
        None,
        {("base", "m.onnx"): base.pin.sha256, ("head", "m.onnx"): head.pin.sha256},
        version="0.1.0",
        now=datetime.datetime.now(tz=datetime.UTC),
    )
    cells = tuple(
        JudgedCell(
            model="m.onnx",
            base_path="m.onnx",
            target=target,
            status=status,
            reason="as measured",
            base_ms=1.0,
            head_ms=1.0,
            interval_percent=None,
            launches=6,
        )
        for target, status in judged.items()
    )
    predicate = msgspec.structs.replace(
        statement.predicate, findings=cells, margin_percent=margin_percent
    )
    evidence, policy = tmp_path / "evidence.json", tmp_path / "policy.yaml"
    evidence.write_bytes(signed(msgspec.structs.replace(statement, predicate=predicate), key))
    policy.write_text(f"keys: ['{public_text(key.public_key())}']\nallow-waived: true\n")
    line = ["deploy-gate", "--production", "p", "--candidate", "c", "--evidence", str(evidence)]
    options = parse([*line, "--evidence-policy", str(policy)]).options
    assert isinstance(options, DeployGateOptions)
    config = Config(
        models=(ModelConfig(path="**"),),
        targets=tuple(TargetConfig(name=name) for name in ("cpu", "gpu")),
    )
    shown = shown_by_evidence(options, config, base, head)
    assert bool(shown) == (not told)
    assert told in capsys.readouterr().err
