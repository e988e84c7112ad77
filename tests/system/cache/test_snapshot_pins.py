from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repository import new_repository
from tunegate.errors import ConfigError
from tunegate.system.cache.snapshot_pins import PINS_FILE, Pin, pins_at, read_pins, write_pins
from tunegate.system.git.repository import GitRepository
from tunegate_cache.format.names import Group

PIN = Pin(zone="main", target="t", version=1, index="digest")
PINNED = {Group("main", "t"): "digest"}


def test_pins_are_read_as_they_were_written_and_as_a_revision_has_them(tmp_path: Path) -> None:
    made = new_repository(tmp_path / "r")
    empty = made.commit({"file": b""})
    write_pins(made.path, (PIN,))
    pinned, repository = made.commit({}), GitRepository(made.path)
    assert read_pins(made.path) == pins_at(repository, pinned) == PINNED
    assert pins_at(repository, empty) == {}
    assert pins_at(repository, made.commit({PINS_FILE: b"{"})) == {}


def test_a_link_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    write_pins(tmp_path, (PIN,))
    (tmp_path / PINS_FILE).rename(tmp_path / "elsewhere")
    (tmp_path / PINS_FILE).symlink_to("elsewhere")
    with pytest.raises(ConfigError, match=PINS_FILE):
        read_pins(tmp_path)
