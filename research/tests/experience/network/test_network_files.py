"""The two files of a network: written, read, and refused."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from research.experience.network.network_card import WIDTH
from research.experience.network.network_files import BODY, read_network, write_network
from research.tests.experience.network.test_body_model import GOOD
from research.tests.experience.network.test_network_card import CARD
from tunegate.errors import ArtifactError
from tunegate.tune.prior import NEST_COLUMNS

OF_GOOD = replace(CARD, body_sha256=hashlib.sha256(GOOD).hexdigest())


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_network(tmp_path, GOOD, OF_GOOD)
    body, card = read_network(tmp_path)
    assert card == OF_GOOD
    assert body(np.zeros((3, NEST_COLUMNS), np.float32)).shape == (3, WIDTH)


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    write_network(tmp_path, GOOD, OF_GOOD)
    (tmp_path / BODY).write_bytes(GOOD + b"\0")
    with pytest.raises(ArtifactError, match="not the body that"):
        read_network(tmp_path)
    (tmp_path / BODY).unlink()
    with pytest.raises(ArtifactError, match="cannot be read"):
        read_network(tmp_path)


def test_files_out_of_bounds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="not found"):
        read_network(tmp_path)
    write_network(tmp_path, GOOD, replace(OF_GOOD, head=()))
    with pytest.raises(ArtifactError, match="0 wide"):
        read_network(tmp_path)
    other = b"no model"
    write_network(tmp_path, other, replace(CARD, body_sha256=hashlib.sha256(other).hexdigest()))
    with pytest.raises(ArtifactError, match="no ONNX model"):
        read_network(tmp_path)
