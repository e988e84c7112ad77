from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.simulated.small_disk import mounted_disk
from tunegate.errors import (
    CancelledError,
    ConfigError,
    EnvironmentUnfitError,
    ModelError,
    OutputError,
)
from tunegate.system.output.full_disk import as_full_disk


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted_disk(tmp_path / "full") as place:
        yield place


def test_a_write_that_found_no_room_is_told_from_its_cause(tmp_path: Path) -> None:
    try:
        try:
            raise OSError(errno.ENOSPC, "No space left on device", "/data/verdict.json")
        except OSError as cause:
            raise OutputError("out/verdict.json: cannot be written.") from cause
    except OutputError as error:
        found = as_full_disk(error, [tmp_path])
    assert isinstance(found, EnvironmentUnfitError)
    assert str(found) == (
        "a disk is full, that of /data/verdict.json (out/verdict.json: cannot be "
        "written). What was finished is kept. Make room, or choose another place "
        "with --out or TMPDIR, and run again."
    )


def test_a_model_is_not_to_blame_for_a_full_disk(full_disk: Path, tmp_path: Path) -> None:
    error = ModelError("m.onnx: ONNX Runtime refuses the model. Fix the export.")
    found = as_full_disk(error, [tmp_path, full_disk / "out" / "not-yet"])
    assert isinstance(found, EnvironmentUnfitError)
    assert f"that of {full_disk}" in str(found)
    assert "refuses the model. Fix the export)" in str(found)


def test_where_there_is_room_an_error_is_itself(tmp_path: Path) -> None:
    for error in (ModelError("broken"), ZeroDivisionError(), OSError(errno.EACCES, "denied")):
        assert as_full_disk(error, [tmp_path]) is error


def test_what_the_user_can_mend_stays_so_on_a_full_disk(full_disk: Path) -> None:
    for error in (ConfigError("unknown key"), CancelledError("cancelled")):
        assert as_full_disk(error, [full_disk]) is error
