"""Outputs of DVC's pipelines, and its caches, in real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repository import Checkout, new_repository
from tests.support.models.detected_changes import content
from tests.support.models.pointer_files import dvc_file_of, keep_in_dvc, md5_of, write
from tests.support.small_onnx import conv_model
from tunegate.artifacts.changes import ChangeSet, Revisions
from tunegate.errors import ModelError
from tunegate.models.reader import GitModelReader
from tunegate.review.config_file import parse_config
from tunegate.review.detect import detect
from tunegate.system.git.dvc import outputs_of_file, stage_outputs
from tunegate.system.git.repository import GitRepository

CONFIG = parse_config("models: [{path: 'models/**/*.onnx'}]\ntargets: [{name: cpu}]\n", "t.yaml")
OLD, NEW = content(conv_model(seed=1)), content(conv_model(seed=2))


def lock_of(path: str, body: bytes, more: str = "") -> bytes:
    """A lock file of DVC 3 with one stage."""
    return (
        "schema: '2.0'\nstages:\n  train:\n    cmd: python train.py\n    outs:\n"
        f"    - path: {path}\n      hash: md5\n      md5: {md5_of(body)}\n"
        f"      size: {len(body)}\n{more}"
    ).encode()


@pytest.fixture
def project(tmp_path: Path) -> Checkout:
    made = new_repository(tmp_path / "r")
    made.commit({"models/other.onnx": content(conv_model())})
    return made


def after(project: Checkout, *commits: dict[str, bytes | None]) -> ChangeSet:
    *before, last = commits
    for each in before:
        project.commit(each)
    base = project.git("rev-parse", "HEAD")
    revisions = Revisions(base=base, head=project.commit(last))
    return detect(GitModelReader(GitRepository(project.path)), revisions, CONFIG, CONFIG)


def test_an_output_of_a_stage_is_a_model_beside_a_committed_one(project: Checkout) -> None:
    for body in (OLD, NEW):
        keep_in_dvc(project, body)
    path = "models/enc.onnx"
    changes = after(project, {"dvc.lock": lock_of(path, OLD)}, {"dvc.lock": lock_of(path, NEW)})
    (change,) = changes.models
    assert (change.path, change.kind, change.change) == (path, "modified", "weights-only")
    assert change.head is not None
    assert GitRepository(project.path).content(change.head) == NEW


def test_the_directory_of_a_stage_and_that_of_its_lock_file_count(project: Checkout) -> None:
    keep_in_dvc(project, NEW)
    pipeline = b"stages:\n  train:\n    wdir: ../models\n    cmd: x\n    outs: [enc.onnx]\n"
    files: dict[str, bytes | None] = {
        "train/dvc.yaml": pipeline,
        "train/dvc.lock": lock_of("enc.onnx", NEW),
    }
    (change,) = after(project, files).models
    assert change.path == "models/enc.onnx"


def test_an_output_that_git_has_too_is_one_model_where_its_bytes_are_equal(
    project: Checkout,
) -> None:
    """`cache: false`. With other bytes, a pull by DVC would ship what nobody has measured."""
    path = "models/enc.onnx"
    (change,) = after(project, {path: NEW, "dvc.lock": lock_of(path, NEW)}).models
    assert change.head is not None
    assert change.head.storage == "git"
    (change,) = after(project, {"dvc.lock": lock_of(path, OLD)}).models
    assert change.kind == "modified"
    assert change.head is not None
    with pytest.raises(ModelError, match="in git, and kept by DVC too"):
        GitRepository(project.path).content(change.head)


def test_an_output_that_is_not_here_says_what_to_pull(project: Checkout) -> None:
    project.commit({"dvc.lock": lock_of("models/enc.onnx", NEW)})
    repository = GitRepository(project.path)
    version = GitModelReader(repository).models("HEAD")["models/enc.onnx"]
    with pytest.raises(ModelError, match=r'only its entry in dvc\.lock.*dvc pull "models/enc'):
        repository.content(version)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (
            {"dvc.lock": lock_of("models/enc", b"x").replace(b"\n      size", b".dir\n      size")},
            "models/enc (a directory that DVC keeps) changed and is not read",
        ),
        (
            {"models.dvc": dvc_file_of("models", b"x").replace(b"\n  size", b".dir\n  size")},
            "models (a directory that DVC keeps) changed and is not read",
        ),
        (
            {"models/all.dvc": dvc_file_of("enc.onnx", b"x")},
            "models/enc.onnx (kept by models/all.dvc) changed and is not read",
        ),
        (
            {
                "dvc.lock": lock_of("enc.onnx", b"x"),
                "dvc.yaml": b"stages: {train: {wdir: '${place}', cmd: x}}",
            },
            "dvc.lock: train (the place of its output enc.onnx is not known here) changed",
        ),
        ({"dvc.lock": b"{"}, "dvc.lock (cannot be read"),
    ],
)
def test_what_dvc_keeps_and_nobody_reads_is_a_line(
    project: Checkout, files: dict[str, bytes | None], told: str
) -> None:
    changes = after(project, files)
    assert [note[: len(told)] for note in changes.notes] == [told]
    assert after(project, {"unrelated": b"x"}).notes == ()


def test_directories_where_no_model_is_looked_for_are_no_line(project: Checkout) -> None:
    data = dvc_file_of("data", b"x").replace(b"\n  size", b".dir\n  size")
    assert after(project, {"data.dvc": data}).notes == ()


@pytest.mark.parametrize(
    ("config", "place"),
    [
        ({}, "sub/.dvc/cache"),
        ({"sub/.dvc/config": "[core]\n    dir = no\n[cache]\n    dir = ../../shared\n"}, "shared"),
        ({"sub/.dvc/config.local": "['cache']\n    dir = {here}/elsewhere\n"}, "elsewhere"),
        ({".dvc/config": "[cache]\ndir = shared # no\n"}, ".dvc/cache"),
    ],
)
@pytest.mark.parametrize("layout", ["files/md5/", ""])
def test_a_cache_is_found_where_dvc_would_look(
    project: Checkout, config: dict[str, str], place: str, layout: str
) -> None:
    path, md5 = "sub/models/enc.onnx", md5_of(NEW)
    project.commit({f"{path}.dvc": dvc_file_of(path, NEW)})
    for name, text in config.items():
        write(project.path / name, text.format(here=project.path).encode())
    write(project.path / place / f"{layout}{md5[:2]}" / md5[2:], NEW)
    repository = GitRepository(project.path)
    assert repository.content(GitModelReader(repository).models("HEAD")[path]) == NEW


def test_a_cache_anywhere_gives_only_the_bytes_that_the_commit_names(project: Checkout) -> None:
    """The configuration of the checkout may name any directory of the machine."""
    path, md5 = "models/enc.onnx", md5_of(NEW)
    project.commit({f"{path}.dvc": dvc_file_of(path, NEW)})
    write(project.path / ".dvc" / "config", b"[cache]\ndir = ../secret\n")
    write(project.path / "secret" / "files" / "md5" / md5[:2] / md5[2:], b"of somebody else")
    repository = GitRepository(project.path)
    with pytest.raises(ModelError, match="where the pointer says"):
        repository.content(GitModelReader(repository).models("HEAD")[path])


@pytest.mark.parametrize(
    "outs",
    ["[]", "3", "[3]", "[{path: 3}]", "[{path: ../x.onnx, md5: 0}]", "[{path: s3://b/x.onnx}]"],
)
def test_what_dvc_would_not_write_is_no_output(outs: str) -> None:
    text = f"stages: {{a: {{outs: {outs}}}, b: 3}}".encode()
    assert stage_outputs(["dvc.lock"], lambda _: text).files == {}
    assert outputs_of_file(b"{") == {}
