from pathlib import Path

import onnx
import pytest

from tests.support.models.external_data import lay_out, model_with_data
from tests.support.small_onnx import matmul_model, save
from tests.support.workspace import Workspace
from tunegate.errors import MeasurementError, ModelError
from tunegate.models.file_pair import FilePair
from tunegate.models.metric_commands import export_named_files
from tunegate.system.git.repository import GitRepository


def test_each_file_is_one_revision_of_the_model(tmp_path: Path) -> None:
    save(matmul_model(), tmp_path / "old" / "a.onnx")
    save(matmul_model(rows=8), tmp_path / "new" / "b.onnx")
    pair = FilePair(tmp_path / "old" / "a.onnx", tmp_path / "new" / "b.onnx")
    for side, name in (("base", "old/a.onnx"), ("head", "new/b.onnx")):
        copy = pair.export_model(pair.version(side, "b.onnx"), tmp_path / "work" / side)
        assert copy.read_bytes() == (tmp_path / name).read_bytes()


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_text("nonsense")
    pair = FilePair(tmp_path / "a.onnx", tmp_path / "a.onnx")
    with pytest.raises(ModelError, match=r"a\.onnx: not an ONNX file"):
        pair.export_model(pair.version("head", "a.onnx"), tmp_path / "work")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"a\.onnx: no such file"):
        FilePair(tmp_path / "a.onnx", tmp_path / "b.onnx")


def test_models_that_differ_in_their_data_files_alone_are_two_versions(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "m.onnx").write_bytes(model_with_data("w.bin"))
        (tmp_path / name / "w.bin").write_text(name)
    pair = FilePair(tmp_path / "old" / "m.onnx", tmp_path / "new" / "m.onnx")
    base, head = pair.version("base", "m.onnx"), pair.version("head", "m.onnx")
    assert base.content_digest == head.content_digest
    assert base.external != head.external
    assert not pair.are_same()
    assert (pair.export_model(head, tmp_path / "work").parent / "w.bin").read_text() == "new"


def test_a_data_file_may_be_named_twice_and_is_no_model(tmp_path: Path) -> None:
    twice = onnx.load_from_string(model_with_data("w"))
    lay_out(twice.graph.initializer.add(name="v"), "./w")
    save(twice, tmp_path / "m.onnx")
    (tmp_path / "w").write_text("w")
    (tmp_path / "own.onnx").write_bytes(model_with_data("own.onnx"))
    pair = FilePair(tmp_path / "m.onnx", tmp_path / "own.onnx")
    copy = pair.export_model(pair.version("base", "m.onnx"), tmp_path / "base")
    assert (copy.parent / "w").read_text() == "w"
    with pytest.raises(ModelError, match=r"own\.onnx: its external data file is itself"):
        pair.export_model(pair.version("head", "m.onnx"), tmp_path / "head")


@pytest.mark.parametrize("linked", ["w/w.bin", "w"])
def test_no_link_is_followed_to_a_data_file(tmp_path: Path, linked: str) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "w.bin").write_text("what only the runner may read")
    place = tmp_path / "checkout"
    (place / linked).parent.mkdir(parents=True)
    (place / "m.onnx").write_bytes(model_with_data("w/w.bin"))
    (place / linked).symlink_to(secret / "w.bin" if linked == "w/w.bin" else secret)
    pair = FilePair(place / "m.onnx", place / "m.onnx")
    for read in (
        lambda: pair.export_model(pair.version("head", "m.onnx"), tmp_path / "work"),
        pair.are_same,
        lambda: pair.data("head", "w/w.bin", 100),
        lambda: pair.read("head", "w/w.bin"),
    ):
        with pytest.raises(ModelError, match=r"w/w\.bin: no plain file, or behind a symbolic link"):
            read()
    assert not (tmp_path / "work" / "w" / "w.bin").exists()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = Workspace(tmp_path / "checkout", "models: [{path: m.onnx}]\n")
    for name in ("tools/wer.py", "tools/more/words.txt", "labels.json", "toolsmith.py"):
        file = found.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    found.commit()
    return found


def exported(workspace: Workspace, into: Path, *words: str) -> set[str]:
    export_named_files(GitRepository(workspace.root), "HEAD", words, into)
    return {str(each.relative_to(into)) for each in into.rglob("*") if each.is_file()}


def test_the_file_of_the_revision_counts_and_not_that_of_the_checkout(
    workspace: Workspace, tmp_path: Path
) -> None:
    (workspace.root / "tools/wer.py").write_text("print(0)")
    exported(workspace, tmp_path / "into", "tools/wer.py")
    assert (tmp_path / "into/tools/wer.py").read_text() == "tools/wer.py"


def test_a_link_is_not_followed(workspace: Workspace, tmp_path: Path) -> None:
    (workspace.root / "link.py").symlink_to("/etc/hostname")
    workspace.commit()
    with pytest.raises(MeasurementError, match=r"link\.py is a link"):
        exported(workspace, tmp_path / "into", "link.py")
