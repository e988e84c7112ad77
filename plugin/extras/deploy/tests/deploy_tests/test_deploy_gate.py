from __future__ import annotations

import datetime
import hashlib
import typing
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace
from tests.support import report_parts as parts
from tests.support.small_onnx import matmul_model, save

from tunegate.artifacts.builds import ErrorLimit, ShippedErrors
from tunegate.artifacts.changes import ModelPin
from tunegate.artifacts.inputs import GIVEN, DrawnInput, InputRule, Uniform
from tunegate.artifacts.verdicts import Status, VerdictOrigin
from tunegate.cli.parse import parse
from tunegate.config import Config, GateConfig, ModelConfig, TargetConfig
from tunegate_cache.format.signing import public_text
from tunegate_deploy.command import DeployGateOptions
from tunegate_deploy.deploy_gate import move_after_pass, shown_by_evidence
from tunegate_deploy.evidence.envelope import sign
from tunegate_deploy.evidence.statement import make_statement
from tunegate_deploy.model_sources.addressed_model import AddressedModel, MovableModel
from tunegate_deploy.model_sources.download_limits import ByteCount, DownloadLimits
from tunegate_deploy.model_sources.fetched_model import FetchedModel


class Alias:
    """A name that says where it was moved."""

    def __init__(self) -> None:
        self.moves = 0

    @property
    def address(self) -> str:
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


_GATE = GateConfig(memory_margin_percent=5.0)
_ON = TargetConfig(name="cpu", kind="cuda", threads=4, expect_gpu="H100")
_RAN = DrawnInput("x", (16, 8), "float32", InputRule(Uniform(0.0, 1.0), "pixels"))
_BUDGET = ShippedErrors(limits=(ErrorLimit(what="max-error", limit=1.0),))
_GIVEN = InputRule(Uniform(0.0, 0.0), f"{GIVEN}0 to 0")


@pytest.mark.parametrize(
    ("rules", "target", "cell", "told"),
    [
        ({}, {}, {}, ""),
        ({"tail_margin_percent": 5.0, "rare_launches": 0.1, "seconds": 9.0}, {}, {}, ""),
        ({}, {"runner": ("h100",), "usd_per_hour": 9.0}, {}, ""),
        ({"margin_percent": 4.0}, {}, {}, "gate.margin-percent was 4, and is 3 here"),
        ({"tail_margin_percent": 1000.0}, {}, {}, "gate.tail-margin-percent was 1000"),
        ({"rare_launches": 0.0}, {}, {}, "gate.rare-launches was 0, and is 0.2 here"),
        ({"memory_margin_percent": None}, {}, {}, "gate.memory-margin-percent was not set"),
        ({}, {"threads": 8}, {}, "targets.cpu.threads was 8, and is 4 here"),
        ({}, {"runtime": "tensorrt"}, {}, "targets.cpu.runtime was tensorrt, and is auto"),
        ({}, {"arch": "sm_90"}, {}, "targets.cpu.arch was sm_90"),
        ({}, {"expect_gpu": None}, {}, "targets.cpu.expect-gpu was not set"),
        ({}, {}, {"target": "gpu"}, "no pass on cpu"),
        ({}, {}, {"status": "waived"}, "no pass on cpu"),
        ({}, {}, {"inputs": (replace(_RAN, shape=(1, 8)),)}, "x as [1, 8], and it is [16, 8]"),
        ({}, {}, {"inputs": (replace(_RAN, rule=_GIVEN),)}, "given values of x"),
        ({}, {}, {"inputs": ()}, "does not say at which sizes"),
        ({}, {}, {"accuracy": _BUDGET}, "accuracy budget (max-error 1)"),
        (None, {}, {}, "another version of tunegate: only one of both knows gate.absolute-floor"),
        ({}, None, {}, "another version of tunegate: only one of both knows targets.cpu.algorithm"),
    ],
)
def test_an_evidence_stands_for_a_measurement_where_it_answers_what_the_gate_asks(
    rules: dict[str, object] | None,
    target: dict[str, object] | None,
    cell: dict[str, object],
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With --promote a pass moves what is in production, so a waiver, laxer rules, other sizes or
    another target's pass must not be one. An evidence of older versions says nothing of these."""
    key = Ed25519PrivateKey.generate()
    base, head = (
        _fetched(save(matmul_model(rows="rows", inner=8, seed=seed), tmp_path / f"{seed}.onnx"))
        for seed in (1, 2)
    )
    finding = replace(parts.finding("pass", "as measured", inputs=(_RAN,)), **cell)
    origin = VerdictOrigin(
        gate={} if rules is None else msgspec.to_builtins(replace(_GATE, **rules)),
        targets={} if target is None else {"cpu": msgspec.to_builtins(replace(_ON, **target))},
    )
    statement = make_statement(
        replace(parts.verdict("pass", 0, finding), origin=origin),
        parts.changes(parts.change()),
        None,
        {("base", parts.MODEL): base.pin.sha256, ("head", parts.MODEL): head.pin.sha256},
        version="0.1.0",
        now=datetime.datetime.now(tz=datetime.UTC),
    )
    evidence, policy = tmp_path / "evidence.json", tmp_path / "policy.yaml"
    evidence.write_bytes(sign(statement, key))
    policy.write_text(f"keys: ['{public_text(key.public_key())}']\nallow-waived: true\n")
    line = ["deploy-gate", "--production", "p", "--candidate", "c", "--evidence", str(evidence)]
    options = parse([*line, "--evidence-policy", str(policy)]).options
    assert isinstance(options, DeployGateOptions)
    sized = ModelConfig(path="2.onnx", inputs={"x": (16, 8)})
    config = Config(models=(sized,), targets=(_ON,), gate=_GATE)
    shown = shown_by_evidence(options, config, base, head)
    refused = capsys.readouterr().err
    assert bool(shown) == (not told)
    assert told in refused
    assert len(refused.splitlines()) == bool(told)
    if not told:
        shown = shown_by_evidence(
            options, replace(config, models=(ModelConfig(path="**"),)), base, head
        )
        assert (shown, "--shape x=" in capsys.readouterr().err) == ("", True)
