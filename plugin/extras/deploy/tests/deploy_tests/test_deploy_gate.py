from __future__ import annotations

import typing
from pathlib import Path

import pytest

from tunegate.artifacts.verdicts import Status
from tunegate_deploy.deploy_gate import move_after_pass
from tunegate_deploy.model_sources.addressed_model import AddressedModel, MovableModel
from tunegate_deploy.model_sources.download_limits import ByteCount, DownloadLimits


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
