from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.system.machine.device_lock import Claim


@pytest.mark.parametrize(
    ("uuid", "name"),
    [
        ("GPU-1a2b.3_c", "tunegate-GPU-1a2b.3_c.lock"),
        ("MIG 1/2", "tunegate-MIG_1_2.lock"),
        ("../../etc/passwd", "tunegate-.._.._etc_passwd.lock"),
    ],
)
def test_the_lock_of_a_device_is_a_file_of_its_directory(uuid: str, name: str) -> None:
    claim = Claim(uuid=uuid, directory="/run/locks", wait_seconds=1.0)
    assert claim.path == Path("/run/locks") / name
    assert claim.path.resolve().parent == Path("/run/locks").resolve()
