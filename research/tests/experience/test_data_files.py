from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.tune.test_prior import experience

from research.experience.data_files import measured_tasks
from tunegate.errors import ArtifactError
from tunegate.tune.prior import experience_of


def test_without_a_file_it_is_what_comes_with_this_version() -> None:
    assert measured_tasks(()) == tuple(experience_of("llvm"))


def test_all_files_are_read_in_their_order(tmp_path: Path) -> None:
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for file in files:
        file.write_bytes(msgspec.json.encode(msgspec.structs.replace(experience(), name=file.stem)))
    assert [task.name for task in measured_tasks(files)] == ["a", "b"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"gone\.jsonl: cannot be read"):
        measured_tasks([tmp_path / "gone.jsonl"])


@pytest.mark.parametrize(
    "line", [b"{}", b"[" * 5000, b"", b"\xff", b'{"name":"","sketches":[],"rows":[]}']
)
def test_the_line_that_is_no_measured_task_is_named(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "bad.jsonl").write_bytes(line + b"\n")
    with pytest.raises(ArtifactError, match=r"bad\.jsonl: line 1 is no measured task"):
        measured_tasks([tmp_path / "bad.jsonl"])
