"""What git itself says of attributes, and what of it changes bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repository import clone, new_repository
from tests.support.small_onnx import matmul_model
from tunegate.artifacts.changes import Revisions
from tunegate.config import Config, ModelConfig
from tunegate.models.reader import GitModelReader
from tunegate.review.detect import detect
from tunegate.system.git.checkout import changes_bytes, conversions, is_safe
from tunegate.system.git.repository import GitRepository

PATH = "models/d.bin"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("*.bin text eol=crlf", "eol=crlf"),
        ("*.bin eol=crlf", "eol=crlf"),
        ("* text=auto eol=crlf", "text=auto eol=crlf"),
        ("*.bin crlf eol=crlf", "eol=crlf"),
        ("*.bin ident", "ident"),
        ("*.bin working-tree-encoding=UTF-16", "working-tree-encoding=UTF-16"),
        ("*.bin -text eol=crlf", None),
        ("* text=auto", None),
        ("*.bin text", None),
        ("*.bin filter=lfs diff=lfs merge=lfs -text", None),
        ("*.md text eol=crlf", None),
    ],
)
def test_what_a_line_does_to_a_file(line: str, told: str | None) -> None:
    assert conversions({".gitattributes": line.encode()}, [PATH]).get(PATH) == told


def test_the_nearest_file_counts() -> None:
    files = {".gitattributes": b"* eol=crlf", "models/.gitattributes": b"*.bin -text"}
    assert conversions(files, [PATH, "other.bin"]) == {"other.bin": "eol=crlf"}


def test_a_checkout_writes_other_bytes_where_we_say_so(tmp_path: Path) -> None:
    origin = new_repository(tmp_path / "origin")
    contents = {"text.bin": b"a\nb\n", "zero.bin": b"a\n\0b\n"}
    for attribute in ("eol=crlf", "text=auto eol=crlf"):
        origin.commit({".gitattributes": f"*.bin {attribute}".encode(), **contents})
        copy = clone(origin, tmp_path / attribute)
        for name, content in contents.items():
            is_changed = (copy.path / name).read_bytes() != content
            assert changes_bytes(attribute, content) == is_changed


@pytest.mark.parametrize(
    "path", ["/etc/.gitattributes", "../.gitattributes", ".GIT/.gitattributes"]
)
def test_a_name_that_leads_out_of_the_tree_is_not_written(path: str) -> None:
    assert not is_safe(path)
    assert is_safe("models/.gitattributes")


@pytest.mark.parametrize(("line", "found"), [(b"* -text", 0), (b"* eol=crlf", 1)])
def test_attributes_above_the_model_are_a_change_where_they_convert_it(
    tmp_path: Path, line: bytes, found: int
) -> None:
    project = new_repository(tmp_path / "project")
    base = project.commit({"models/m.onnx": matmul_model().SerializeToString()})
    revisions = Revisions(base=base, head=project.commit({".gitattributes": line}))
    config = Config(models=(ModelConfig(path="**/*.onnx"),))
    changes = detect(GitModelReader(GitRepository(project.path)), revisions, config, config)
    assert len(changes.models) == found
