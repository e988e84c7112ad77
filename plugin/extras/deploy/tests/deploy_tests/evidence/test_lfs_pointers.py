"""Models in Git LFS: the subjects of an evidence are the files, never their pointers."""

import hashlib
import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.support import report_parts as parts
from tests.support.git_repository import new_repository
from tests.support.models import pointer_files
from tests.support.models.external_data import model_with_data
from tests.support.small_onnx import conv_model

from tunegate.artifacts import artifact_io
from tunegate.cli.parse import parse
from tunegate.errors import ModelError
from tunegate.models.reader import GitModelReader
from tunegate.system.git.repository import GitRepository
from tunegate_deploy.command import AttestOptions
from tunegate_deploy.evidence import attest
from tunegate_deploy.evidence.verify import file_digests

MODEL, DATA, SMALLER = model_with_data("w"), b"\0" * 4096, conv_model().SerializeToString()
POINTERS = {
    "models/m.onnx": pointer_files.lfs_pointer_to(MODEL),
    "models/w": pointer_files.lfs_pointer_to(DATA),
}


def test_the_subjects_of_a_model_in_lfs_are_its_files(tmp_path: Path) -> None:
    checkout = new_repository(tmp_path / "project")
    checkout.commit({"models/m.onnx": SMALLER})
    reader = GitModelReader(GitRepository(checkout.path))
    older, _ = reader.with_digest(reader.models(checkout.git("rev-parse", "HEAD"))["models/m.onnx"])
    checkout.commit(POINTERS)
    for content in (MODEL, DATA):
        pointer_files.keep_in_lfs(checkout, content)
    reader = GitModelReader(GitRepository(checkout.path))
    version, _ = reader.with_digest(reader.models("HEAD")["models/m.onnx"])
    assert version.storage == "lfs"
    # The upgrade of a runtime, in the same pull request, has the head's model on both sides.
    upgrade = replace(parts.change("models/m.onnx", base=version, head=version), kind="upgraded")
    changes = parts.changes(parts.change("models/m.onnx", base=older, head=version), upgrade)
    out = tmp_path / "out"
    out.mkdir()
    artifact_io.write(out / "changes.json", changes)
    verdict = replace(parts.verdict("pass", 0), revisions=changes.revisions)
    artifact_io.write(out / "verdict.json", verdict)
    line = ["attest", "--unsigned", "--repository", str(checkout.path), "--out", str(out)]
    options = parse(line).options
    assert isinstance(options, AttestOptions)
    assert attest.run(options) == 0
    subjects = json.loads((out / "statement.json").read_text())["subject"]
    digests = {each["name"]: each["digest"]["sha256"] for each in subjects}
    assert {name: each for name, each in digests.items() if name != "configuration"} == {
        "base:models/m.onnx": hashlib.sha256(SMALLER).hexdigest(),
        "head:models/m.onnx": hashlib.sha256(MODEL).hexdigest(),
        "head:models/w": hashlib.sha256(DATA).hexdigest(),
    }


@pytest.mark.parametrize(("name", "told"), [("m.onnx", "m.onnx: it"), ("w", "data file w")])
def test_a_pointer_in_place_of_what_is_deployed_is_refused_by_name(
    name: str, told: str, tmp_path: Path
) -> None:
    for file, content in (("m.onnx", MODEL), ("w", DATA)):
        (tmp_path / file).write_bytes(content)
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "m.onnx").symlink_to(tmp_path / "m.onnx")
    for at in (tmp_path, tmp_path / "link"):
        assert set(file_digests(at / "m.onnx")) == {"m.onnx", "w"}
    (tmp_path / "link" / "w").write_bytes(b"other data, which a runtime may read")
    with pytest.raises(ModelError, match="w beside the link is not the one beside the model"):
        file_digests(tmp_path / "link" / "m.onnx")
    (tmp_path / name).write_bytes(POINTERS[f"models/{name}"])
    with pytest.raises(ModelError, match=f"{told} is only a Git LFS pointer"):
        file_digests(tmp_path / "m.onnx")
