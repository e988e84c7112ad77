from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tunegate.errors import ConfigError, EnvironmentUnfitError, ModelError
from tunegate_deploy.model_sources.download_limits import ByteCount, DownloadLimits, within_limits


def test_an_answer_comes_back_and_a_fault_is_raised_where_one_waits() -> None:
    assert within_limits(lambda: 7, "a", DownloadLimits()) == 7

    def ask() -> int:
        raise ConfigError("no such version")

    with pytest.raises(ConfigError, match="no such version"):
        within_limits(ask, "a", DownloadLimits())


def test_who_never_answers_is_not_waited_for() -> None:
    never = threading.Event()
    with pytest.raises(EnvironmentUnfitError, match=r"^s3://a: not here after 0\.3 s"):
        within_limits(never.wait, "s3://a", DownloadLimits(seconds=0.3))
    never.set()


def test_a_client_that_fills_the_disk_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(2000))
    never = threading.Event()
    with pytest.raises(ModelError, match="more than"):
        within_limits(never.wait, "hf://a", DownloadLimits(bytes=1000), tmp_path)
    never.set()


def test_bytes_are_counted_over_all_files() -> None:
    count = ByteCount(2**30)
    count.add(2**30 - 1)
    assert count.bytes_left == 1
    with pytest.raises(ModelError, match="more than 1 GiB"):
        count.add(2)
