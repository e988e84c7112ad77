from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.waivers import TODAY
from tunegate.cli.handlers.doctor_checks import waivers_check
from tunegate.config import Config, ModelConfig

CONFIG = Config(models=(ModelConfig(path="m.onnx"),))
WAIVER = "{model: m.onnx, target: %s, ceiling-percent: 8, expires: 2026-07-20, issue: i, reason: r}"


def checks(root: Path, body: bytes) -> list[tuple[bool, str]]:
    (root / "tunegate-waivers.yaml").write_bytes(body)
    found = waivers_check(root, CONFIG, ["m.onnx"], TODAY)
    return [(each.ok, each.detail) for each in found]


def test_without_the_file_nothing_is_said(tmp_path: Path) -> None:
    assert [*waivers_check(tmp_path, CONFIG, ["m.onnx"], TODAY)] == []


def test_waivers_that_are_about_something_are_counted(tmp_path: Path) -> None:
    target = CONFIG.targets[0].name
    (found,) = checks(tmp_path, f"waivers: [{WAIVER % target}]".encode())
    assert found == (True, "tunegate-waivers.yaml: 1 waiver")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"\xff", "not UTF-8"),
        (b"waivers: 3", "waivers"),
        (f"waivers: [{WAIVER % 'nowhere'}]".encode(), "the model has no target nowhere"),
    ],
)
def test_what_cannot_be_used_is_a_problem(tmp_path: Path, body: bytes, said: str) -> None:
    (found,) = checks(tmp_path, body)
    assert not found[0]
    assert found[1].startswith("tunegate-waivers.yaml: ")
    assert said in found[1]


def test_a_file_that_is_too_large_says_so(tmp_path: Path) -> None:
    (found,) = checks(tmp_path, b"# " + b"x" * 2**20)
    assert found == (
        False,
        "tunegate-waivers.yaml: over 1 MB, which is not read here. Remove what has expired.",
    )
