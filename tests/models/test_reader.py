"""Models of a revision, read from names and pointers first."""

import hashlib
from pathlib import Path

import msgspec
import pytest

from tests.support.git_repository import Checkout, actions_checkout, new_repository
from tests.support.models import pointer_files
from tests.support.models.external_data import model_with_data
from tests.support.small_onnx import conv_model, matmul_model
from tunegate.artifacts.changes import ExternalFile, ModelVersion
from tunegate.models.reader import GitModelReader
from tunegate.system.git.repository import GitRepository

CONV: bytes = conv_model().SerializeToString()
SMALL: bytes = matmul_model(inner=2, columns=2).SerializeToString()


@pytest.fixture
def project(tmp_path: Path) -> Checkout:
    return new_repository(tmp_path / "project")


def reader_of(project: Checkout) -> GitModelReader:
    return GitModelReader(GitRepository(project.path))


def only_model(project: Checkout, revision: str = "HEAD") -> ModelVersion:
    (version,) = reader_of(project).models(revision).values()
    return version


def test_only_models_are_models(project: Checkout) -> None:
    files = {"a.onnx": CONV, "b.ONNX.txt": b"", "c.onnx.data": b"", "d é/e f.onnx": CONV}
    project.commit(files)
    assert set(reader_of(project).models("HEAD")) == {"a.onnx", "d é/e f.onnx"}


def test_a_plain_model_is_named_by_its_blob(project: Checkout) -> None:
    project.commit({"m.onnx": CONV})
    version = only_model(project)
    blob = project.git("rev-parse", "HEAD:m.onnx")
    assert (version.content_digest, version.storage) == (f"git:{blob}", "git")
    assert (version.size_bytes, version.graph_digest) == (len(CONV), None)


def test_an_lfs_pointer_names_its_content(project: Checkout) -> None:
    project.commit({"m.onnx": pointer_files.lfs_pointer_to(CONV)})
    version = only_model(project)
    assert (version.storage, version.size_bytes) == ("lfs", len(CONV))
    digest, size_text = version.content_digest.split()
    assert digest.encode() in pointer_files.lfs_pointer_to(CONV)
    assert int(size_text) == len(CONV)  # with another one, a checkout gets nothing


def test_a_dvc_file_names_its_content(project: Checkout) -> None:
    project.commit({"models/m.onnx.dvc": pointer_files.dvc_file_of("m.onnx", CONV)})
    version = only_model(project)
    assert (version.path, version.storage) == ("models/m.onnx", "dvc")
    expected = (f"md5:{pointer_files.md5_of(CONV)}", len(CONV))
    assert (version.content_digest, version.size_bytes) == expected


def test_a_broken_dvc_file_still_stands_for_a_model(project: Checkout) -> None:
    project.commit({"m.onnx.dvc": b"<<<<<<< ours"})
    version, problem = reader_of(project).with_digest(only_model(project))
    assert version.graph_digest is None
    assert problem.startswith("m.onnx.dvc: not a DVC file")


@pytest.mark.parametrize("storage", ["git", "lfs", "dvc"])
def test_a_graph_is_the_same_wherever_it_is_stored(project: Checkout, storage: str) -> None:
    stored = {
        "git": {"m.onnx": CONV},
        "lfs": {"m.onnx": pointer_files.lfs_pointer_to(CONV)},
        "dvc": {"m.onnx.dvc": pointer_files.dvc_file_of("m.onnx", CONV)},
    }
    pointer_files.keep_in_lfs(project, CONV)
    pointer_files.keep_in_dvc(project, CONV)
    project.commit({"plain.onnx": CONV, **stored[storage]})
    reader = reader_of(project)
    models = reader.models("HEAD")
    version, problem = reader.with_digest(models["m.onnx"])
    assert (version.storage, problem) == (storage, "")
    assert version.graph_digest == reader.with_digest(models["plain.onnx"])[0].graph_digest


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "an ONNX file without a graph"),
        (b"junk", "not an ONNX file, or cut short"),
        (pointer_files.lfs_pointer_to(CONV), "m.onnx at HEAD: only its Git LFS pointer is here"),
        (model_with_data("../w"), "its external data file '../w' lies outside"),
    ],
)
def test_an_unreadable_model_says_why(project: Checkout, content: bytes, problem: str) -> None:
    project.commit({"m.onnx": content})
    version, said = reader_of(project).with_digest(only_model(project))
    graph = "" if content == b"junk" else None
    assert version == msgspec.structs.replace(only_model(project), graph_digest=graph)
    assert said.startswith(problem)


def test_a_model_whose_blob_is_out_of_reach_is_listed_and_says_why(
    project: Checkout, tmp_path: Path
) -> None:
    before = project.commit({"m.onnx": CONV})
    head = project.commit({"m.onnx": SMALL})
    repository = GitRepository(actions_checkout(project, tmp_path / "job", head).path)
    repository.range_revisions(before, head)
    project.path.rename(tmp_path / "moved")
    reader = GitModelReader(repository)
    version, problem = reader.with_digest(reader.models(before)["m.onnx"])
    assert version.graph_digest is None
    assert problem == (
        "m.onnx: its content is not in this clone, and cannot be fetched. "
        f"This says why: git cat-file blob {before[:12]}:m.onnx > /dev/null"
    )


# data files ----------------------------------------------------------------------


def test_an_opened_model_names_its_data_files(project: Checkout) -> None:
    files = {"models/m.onnx": model_with_data("d/w.bin"), "models/d/w.bin": b"w"}
    project.commit({**files, "models/other.bin": b"x"})
    version, _ = reader_of(project).with_digest(only_model(project))
    blob = project.git("rev-parse", "HEAD:models/d/w.bin")
    assert version.external == (ExternalFile("models/d/w.bin", f"git:{blob}"),)


def test_data_that_is_not_there_is_named_all_the_same(project: Checkout) -> None:
    project.commit({"m.onnx": model_with_data("w.bin")})
    version, _ = reader_of(project).with_digest(only_model(project))
    assert version.external == (ExternalFile("w.bin", "git:missing"),)


@pytest.mark.parametrize(
    "name",
    [
        *("models/w.bin", "models/deep/er/w", "models/w.bin.dvc", "models/README.md"),
        *("models/.gitignore", "models/a.py", "models/.d/w"),
        *("w.bin", "elsewhere/w.bin", "models.onnx/w"),
    ],
)
def test_what_may_be_data_alone_changes_the_unopened_model(project: Checkout, name: str) -> None:
    project.commit({"models/m.onnx": pointer_files.lfs_pointer_to(CONV), name: b"1"})
    before = only_model(project)
    project.commit({name: b"2"})
    assert (only_model(project).external != before.external) == name.startswith("models/")


def test_a_model_at_the_root_may_have_its_data_anywhere(project: Checkout) -> None:
    project.commit({"m.onnx": CONV, "deep/w": b"1"})
    before = only_model(project)
    project.commit({"deep/w": b"2"})
    assert only_model(project).external != before.external


def test_a_content_is_read_once_for_its_data_files(project: Checkout) -> None:
    before = project.commit({"m.onnx": model_with_data("w"), "w": b"1"})
    after = project.commit({"w": b"2"})
    reader = reader_of(project)
    old, _ = reader.with_data_files(reader.models(before)["m.onnx"])
    project.path.rename(project.path.with_name("moved"))
    project.path.mkdir()
    new, problem = reader.with_data_files(msgspec.structs.replace(old, revision=before))
    assert (new.external, problem) == (old.external, "")
    assert after


def test_the_outline_of_a_content_is_made_once(project: Checkout) -> None:
    before = project.commit({"m.onnx": CONV})
    after = project.commit({"elsewhere/n.onnx": CONV, "other.onnx": SMALL})
    reader = reader_of(project)
    found = reader.models(after)
    outline = reader.outline(reader.models(before)["m.onnx"])
    assert outline is not None
    assert reader.outline(found["elsewhere/n.onnx"]) is outline
    assert reader.outline(found["other.onnx"]) != outline


def test_a_link_is_not_followed(project: Checkout) -> None:
    (project.path / "real").write_bytes(CONV)
    (project.path / "m.onnx").symlink_to("real")
    project.commit({})
    version, problem = reader_of(project).with_digest(only_model(project))
    assert version.graph_digest is None
    assert problem == "m.onnx: a symbolic link, which is not followed. Commit the file itself."


def test_a_huge_dvc_file_is_not_read(project: Checkout) -> None:
    project.commit({"m.onnx.dvc": pointer_files.dvc_file_of("m.onnx", CONV) + b"#" * 300_000})
    assert only_model(project).content_digest.startswith("git:")
    assert "not a DVC file of this name" in reader_of(project).with_digest(only_model(project))[1]


# a shallow clone -----------------------------------------------------------------


def test_a_pull_request_fetches_the_changed_models_only(project: Checkout, tmp_path: Path) -> None:
    same = {"models/same.onnx": CONV, "models/same.bin": b"s" * 2000}
    project.commit({**same, "models/m.onnx": SMALL, "models/labels.bin": b"l" * 2000})
    before = {
        name: project.git("rev-parse", f"HEAD:models/{name}") for name in ("m.onnx", "labels.bin")
    }
    project.git("checkout", "-q", "-b", "topic")
    project.commit(
        {"models/m.onnx": conv_model(seed=1).SerializeToString(), "models/labels.bin": b"L" * 2000}
    )
    project.git("checkout", "-q", "main")
    tips = project.git("rev-parse", "main"), project.git("rev-parse", "topic")
    here = actions_checkout(project, tmp_path / "job", project.merge("topic"))
    repository = GitRepository(here.path)
    found = repository.merge_commit_revisions(*tips)
    reader = GitModelReader(repository)
    base, head = reader.models(found.base or ""), reader.models(found.head)
    assert base["models/same.onnx"].content_digest == head["models/same.onnx"].content_digest
    assert reader.with_digest(base["models/m.onnx"])[1] == ""
    assert here.has_object(before["m.onnx"])
    assert not here.has_object(before["labels.bin"])


def test_the_case_of_a_suffix_hides_no_model(project: Checkout) -> None:
    project.commit({"a.ONNX": CONV, "b.Onnx.DVC": pointer_files.dvc_file_of("b.Onnx", CONV)})
    assert set(reader_of(project).models("HEAD")) == {"a.ONNX", "b.Onnx"}


def test_a_link_is_a_model_that_nobody_can_open(project: Checkout) -> None:
    project.commit({"real.onnx": CONV})
    (project.path / "m.onnx").symlink_to("real.onnx")
    project.commit({})
    reader = reader_of(project)
    linked = reader.models("HEAD")["m.onnx"]
    assert linked.storage == "link"
    assert "a symbolic link, which is not followed" in reader.with_digest(linked)[1]
    assert reader.outline(linked) is None


def test_what_stands_in_a_models_place_is_named(project: Checkout) -> None:
    project.commit({"file.onnx": CONV, "a/m.onnx/readme": b""})
    (project.path / "b").symlink_to("a")
    project.commit({})
    project.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},c")
    project.git("commit", "-q", "-m", "submodule")
    reader = reader_of(project)
    assert reader.obstacle("HEAD", "a/m.onnx") == "a/m.onnx is a directory"
    assert reader.obstacle("HEAD", "b/m.onnx") == "b is a symbolic link"
    assert reader.obstacle("HEAD", "c") == "c is a submodule"
    assert reader.obstacle("HEAD", "c/deep/m.onnx") == "c is a submodule"
    assert reader.obstacle("HEAD", "file.onnx") == reader.obstacle("HEAD", "gone.onnx") == ""


def test_thousands_of_pointers_take_as_many_processes_as_one(
    project: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A push of 500 bytes can name one blob 100,000 times."""
    pipeline, outputs = "stages:\n  s:\n    outs:\n", "s:\n  outs:\n"

    def count_of(number: int) -> int:
        nonlocal pipeline, outputs
        for i in range(number):
            out = f"{number}/{i}/c.onnx"
            pipeline += f"    - {out}\n"
            outputs += f"  - {{path: {out}, md5: {hashlib.md5(CONV).hexdigest()}}}\n"
            files = {
                f"{number}/{i}/a.onnx": pointer_files.lfs_pointer_to(CONV if i % 2 else SMALL),
                f"{number}/{i}/b.onnx.dvc": pointer_files.dvc_file_of("b.onnx", CONV),
                out: CONV,
            }
            for name, body in files.items():
                (project.path / name).parent.mkdir(parents=True, exist_ok=True)
                (project.path / name).write_bytes(body)
        project.commit({"dvc.yaml": pipeline.encode(), "dvc.lock": outputs.encode()})
        log = tmp_path / f"log{number}"
        monkeypatch.setenv("GIT_TRACE", str(log))
        models = reader_of(project).models("HEAD")
        monkeypatch.delenv("GIT_TRACE")
        storages = [m.storage for path, m in models.items() if path.startswith(f"{number}/")]
        assert sorted(storages) == ["dvc"] * number + ["git"] * number + ["lfs"] * number
        return log.read_text().count("built-in: git ")

    assert count_of(20) == count_of(1) > 0
