from __future__ import annotations

import pytest

from tunegate.runtimes.tensorrt import runtime as build_turn
from tunegate.runtimes.tensorrt.runtime import device_turn


def test_without_a_device_there_is_nothing_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_turn, "visible_gpus", tuple)
    with device_turn():
        pass
