"""Outputs of DVC's pipelines, and its caches, in real repositories."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.git_repository import Checkout, new_repository
from tests.support.models.detected_changes import content
from tests.support.models.external_data import model_with_data
from tests.support.models.pointer_files import dvc_file_of, keep_in_dvc, md5_of, write
from tests.support.present import present
from tests.support.small_onnx import conv_model
from tunegate.artifacts.changes import ChangeSet, Revisions
from tunegate.errors import ModelError, RevisionError
from tunegate.models.reader import GitModelReader
from tunegate.review.config_file import parse_config
from tunegate.review.detect import detect
from tunegate.system.git.dvc import stage_outputs
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


PIPELINE = b"""\
stages:
  train:
    cmd: python train.py
    outs: [models/enc.onnx, {models: {persist: true}}, models/enc, enc.onnx]
"""


@pytest.fixture
def project(tmp_path: Path) -> Checkout:
    made = new_repository(tmp_path / "r")
    made.commit({"models/other.onnx": content(conv_model()), "dvc.yaml": PIPELINE})
    return made


def after(project: Checkout, *commits: Mapping[str, bytes | None]) -> ChangeSet:
    *before, last = commits
    for each in before:
        project.commit(each)
    revisions = Revisions(base=project.git("rev-parse", "HEAD"), head=project.commit(last))
    return detect(GitModelReader(GitRepository(project.path)), revisions, CONFIG, CONFIG)


def test_an_output_of_a_stage_is_a_model_beside_a_committed_one(project: Checkout) -> None:
    for body in (OLD, NEW):
        keep_in_dvc(project, body)
    path = "models/enc.onnx"
    changes = after(project, {"dvc.lock": lock_of(path, OLD)}, {"dvc.lock": lock_of(path, NEW)})
    (change,) = changes.models
    assert (change.path, change.kind, change.change) == (path, "modified", "weights-only")
    assert GitRepository(project.path).content(present(change.head)) == NEW


def test_the_directory_of_a_stage_and_that_of_its_lock_file_count(project: Checkout) -> None:
    keep_in_dvc(project, NEW)
    pipeline = b"stages:\n  train:\n    wdir: ../models\n    cmd: x\n    outs: [enc.onnx]\n"
    files: dict[str, bytes | None] = {
        "train/dvc.yaml": pipeline,
        "train/dvc.lock": lock_of("enc.onnx", NEW),
    }
    (change,) = after(project, files).models
    assert change.path == "models/enc.onnx"


def test_an_output_that_git_has_too_is_one_model_if_its_bytes_are_equal(project: Checkout) -> None:
    """`cache: false`. With other bytes, a pull by DVC would ship what nobody has measured."""
    path = "models/enc.onnx"
    (change,) = after(project, {path: NEW, "dvc.lock": lock_of(path, NEW)}).models
    assert change.head is not None
    assert change.head.storage == "git"
    (change,) = after(project, {"dvc.lock": lock_of(path, OLD)}).models
    assert change.kind == "modified"
    with pytest.raises(ModelError, match="kept twice, by git and DVC"):
        GitRepository(project.path).content(present(change.head))


def test_an_output_that_is_not_here_says_what_to_pull(project: Checkout) -> None:
    project.commit({"dvc.lock": lock_of("models/enc.onnx", NEW)})
    repository = GitRepository(project.path)
    version = GitModelReader(repository).models("HEAD")["models/enc.onnx"]
    with pytest.raises(ModelError, match=r"only its entry in a file of DVC.*: dvc pull models/enc"):
        repository.content(version)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (
            {"dvc.lock": lock_of("models/enc", b"x").replace(b"\n      size", b".dir\n      size")},
            "models/enc (a directory that DVC keeps, whose listing is not in the cache)",
        ),
        (
            {"models.dvc": dvc_file_of("models", b"x").replace(b"\n  size", b".dir\n  size")},
            "models (a directory that DVC keeps, whose listing is not in the cache)",
        ),
        (
            {"models.dvc": b"outs: [{path: models, etag: 0a.dir}]"},
            "models.dvc: models (a directory without md5) changed and is not read",
        ),
        (
            {"models/enc.onnx.dvc": b"outs: [{path: enc.onnx, md5: 0, etag: 0a.dir}]"},
            "models/enc.onnx.dvc: models/enc.onnx (a directory without md5) changed and is not",
        ),
        (
            {"in.dvc": b"wdir: models\nouts: [{path: enc.onnx, etag: 0a}]"},
            "in.dvc: models/enc.onnx (a model without md5) changed and is not read",
        ),
        (
            {"models.dvc": b"outs: &a [{path: models, md5: *a}]"},
            "models.dvc: models (its DVC file cannot be read (",
        ),
        (
            {"models.dvc": dvc_file_of("models", b"x") + b"#" * 300_000},
            "models.dvc: models (its DVC file cannot be read (it is too long)) changed",
        ),
        (
            {
                "dvc.lock": lock_of("enc.onnx", b"x"),
                "dvc.yaml": b"stages: {train: {wdir: '${place}', outs: [enc.onnx]}}",
            },
            "dvc.lock: train (the place of its output enc.onnx is not known here) changed",
        ),
        ({"dvc.lock": b"{"}, "dvc.lock (cannot be read"),
        (
            {"dvc.lock": lock_of("models/enc.onnx", b"x"), "dvc.yaml": b"{"},
            "dvc.lock (dvc.yaml beside it cannot be read",
        ),
        (
            {"dvc.lock": lock_of("models/enc.onnx", b"x"), "dvc.yaml": None},
            "dvc.lock (there is no dvc.yaml beside it) changed and is not read",
        ),
    ],
)
def test_what_dvc_keeps_and_nobody_reads_is_a_line(
    project: Checkout, files: dict[str, bytes | None], told: str
) -> None:
    changes = after(project, files)
    assert [note[: len(told)] for note in changes.notes] == [told]
    assert after(project, {"unrelated": b"x"}).notes == ()


def test_a_model_that_may_be_an_unread_output_is_not_deleted(project: Checkout) -> None:
    """A stage that is declared anew takes what its lock file has had all along."""
    before = {"models/enc.onnx": OLD, "dvc.lock": lock_of("enc.onnx", NEW)}
    stage = b"stages: {train: {wdir: '${place}', outs: [enc.onnx]}}"
    changes = after(project, before, {"models/enc.onnx": None, "dvc.yaml": stage})
    assert [each.kind for each in changes.models] == ["unreadable"]
    assert changes.policy_changes == ()


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
    assert stage_outputs(["dvc.lock", "dvc.yaml"], lambda _: text).files == {}


def test_more_yaml_than_can_be_read_in_minutes_is_refused() -> None:
    files = [f"{number}.dvc" for number in range(33)]
    with pytest.raises(RevisionError, match="over 8 MiB together"):
        stage_outputs(files, lambda _: b"\t" * 2**18)
    assert len(stage_outputs(files[:32], lambda _: b"\t" * 2**18).unread) == 32


ONE, OTHER = "1" * 32, "2" * 32


@pytest.mark.parametrize(
    ("pipeline", "lock", "digest"),
    [
        pytest.param("real: [m.onnx]", f"real: {ONE}, gone: {OTHER}", ONE, id="a removed stage"),
        pytest.param("real: [n.onnx]", f"real: {ONE}", None, id="a removed output"),
        pytest.param("real: ['${d}.onnx']", f"real@a: {ONE}", ONE, id="a template"),
        pytest.param("real: ['a${d}x']", f"real@a: {ONE}", None, id="another template"),
        pytest.param("real: ['a/${d}/../x']", f"real@a: {ONE}", ONE, id="a template and .."),
        pytest.param("real: ['../a/${d}.onnx']", f"real@a: {ONE}", None, id=".. and a template"),
        pytest.param(f"real: ['{'${' * 60_000}']", f"real: {ONE}", None, id="never ends"),
        pytest.param("real: ['${d}n${d}x']", f"real@a: {ONE}", ONE, id="two templates"),
        pytest.param(
            f"real: {[f'{n}/${{d}}' for n in range(200)]}", f"real@a: {ONE}", ONE, id="too many"
        ),
        pytest.param("real: [{./m.onnx: {cache: false}}]", f"real: {ONE}", ONE, id="options"),
        pytest.param(
            "a: [m.onnx], b: [m.onnx]", f"a: {ONE}, b: {OTHER}", f"{ONE} or {OTHER}", id="twice"
        ),
    ],
)
def test_of_a_lock_file_what_the_pipeline_declares_counts(
    pipeline: str, lock: str, digest: str | None
) -> None:
    """DVC never removes a stage from its lock file, and pulls what its pipeline names."""
    declared = re.sub(r"(\[.*?\])", r"{outs: \1}", pipeline)
    outputs = re.sub(r"(\w{32})", r"{outs: [{path: m.onnx, md5: '\1', hash: md5}]}", lock)
    files = {"dvc.yaml": f"stages: {{{declared}}}", "dvc.lock": f"stages: {{{outputs}}}"}
    kept = stage_outputs(files, lambda name: files[name].encode()).files
    assert {path: output.digest for path, output in kept.items()} == (
        {} if digest is None else {"m.onnx": digest}
    )


@pytest.mark.parametrize(
    ("tracked", "text"),
    [
        pytest.param("all.dvc", "wdir: models\nouts: [{OUT}]", id="wdir"),
        pytest.param("zoo/all.dvc", "wdir: ../models\nouts: [{OUT}]", id="wdir above"),
        pytest.param("models/all.dvc", "outs: [{path: a.txt, md5: 0}, {OUT}]", id="second"),
        pytest.param("models/other.onnx.dvc", "outs: [{OWN}, {OUT}]", id="second of a model"),
        pytest.param("zoo/enc.onnx.dvc", "wdir: ../models\nouts: [{OUT}]", id="of another model"),
    ],
)
def test_every_output_of_a_dvc_file_is_a_model_where_a_pull_puts_it(
    project: Checkout, tracked: str, text: str
) -> None:
    """A second output, or one that `wdir` moves, would ship without having been measured."""

    def kept(body: bytes) -> dict[str, bytes | None]:
        keep_in_dvc(project, body)
        out = f"{{path: enc.onnx, hash: md5, md5: {md5_of(body)}, size: {len(body)}}}"
        own = f"{{path: other.onnx, hash: md5, md5: {md5_of(OLD)}, size: {len(OLD)}}}"
        return {tracked: text.replace("{OUT}", out).replace("{OWN}", own).encode()}

    changes = after(project, {**kept(OLD), "models/other.onnx": None}, kept(NEW))
    (change,) = (each for each in changes.models if each.path == "models/enc.onnx")
    assert (change.kind, change.change, changes.notes) == ("modified", "weights-only", ())
    assert GitRepository(project.path).content(present(change.head)) == NEW


@pytest.mark.parametrize("own", ["models/enc.onnx.dvc", "models/enc.onnx"])
def test_a_model_that_two_files_keep_differently_is_refused(project: Checkout, own: str) -> None:
    for body in (OLD, NEW):
        keep_in_dvc(project, body)
    mine = OLD if own.endswith(".onnx") else dvc_file_of("enc.onnx", OLD)
    files = {own: mine, "all.dvc": b"wdir: models\n" + dvc_file_of("enc.onnx", NEW)}
    (change,) = after(project, {own: mine}, files).models
    assert change.kind == "modified"
    with pytest.raises(ModelError, match=r"models/enc\.onnx: kept twice"):
        GitRepository(project.path).content(present(change.head))


@pytest.mark.parametrize("data", [b"\0" * 64, b"\1" * 64], ids=["equal", "other"])
def test_a_data_file_that_two_files_keep_counts_where_its_bytes_are_equal(
    project: Checkout, tmp_path: Path, data: bytes
) -> None:
    body, name = model_with_data("enc.onnx.data"), "enc.onnx.data"
    files = {
        "models/enc.onnx": body,
        f"models/{name}": b"\0" * 64,
        "all.dvc": b"wdir: models\n" + dvc_file_of(name, data),
    }
    (change,) = after(project, files).models
    assert change.head is not None
    if data == b"\0" * 64:
        GitRepository(project.path).export_model(change.head, tmp_path / "out")
        assert (tmp_path / "out" / name).read_bytes() == data
    else:
        with pytest.raises(ModelError, match=r"enc\.onnx\.data: kept twice"):
            GitRepository(project.path).export_model(change.head, tmp_path / "out")


def test_a_model_that_two_stages_keep_is_no_model(project: Checkout) -> None:
    path = "models/enc.onnx"
    _, _, again = lock_of(path, OLD).decode().partition("  train:\n")
    again = f"  again:\n{again}"
    pipeline = PIPELINE + b"  again: {cmd: x, outs: [models/enc.onnx]}\n"
    project.commit({"dvc.yaml": pipeline, "dvc.lock": lock_of(path, NEW, again)})
    repository = GitRepository(project.path)
    version = GitModelReader(repository).models("HEAD")[path]
    with pytest.raises(ModelError, match=f"{md5_of(NEW)} or {md5_of(OLD)}"):
        repository.content(version)


# Directories.

FILES = {"enc.onnx": OLD, "enc.onnx.data": b"1", "sub/dec.onnx": OLD}


def listing_of(files: dict[str, bytes]) -> bytes:
    entries = [{"md5": md5_of(files[name]), "relpath": name} for name in sorted(files)]
    return json.dumps(entries).encode()


def directory_file(listing: bytes, name: str = "models") -> bytes:
    return (
        f"outs:\n- md5: {md5_of(listing)}.dir\n  size: 9\n  nfiles: 3\n  hash: md5\n"
        f"  path: {name}\n"
    ).encode()


def keep_listing(project: Checkout, listing: bytes) -> Path:
    md5 = md5_of(listing)
    return write(project.path / ".dvc/cache/files/md5" / md5[:2] / f"{md5[2:]}.dir", listing)


def keep_directory(project: Checkout, files: dict[str, bytes]) -> bytes:
    """Returns the DVC file of a directory with these files, all of which are in the cache."""
    for body in files.values():
        keep_in_dvc(project, body)
    keep_listing(project, listing_of(files))
    return directory_file(listing_of(files))


def test_models_of_a_directory_are_compared_one_by_one(project: Checkout) -> None:
    before = {"models.dvc": keep_directory(project, FILES), "models/other.onnx": None}
    after_ = {"models.dvc": keep_directory(project, {**FILES, "sub/dec.onnx": NEW})}
    changes = after(project, before, after_)
    (change,) = changes.models
    expected = ("models/sub/dec.onnx", "modified", "weights-only", ())
    assert (change.path, change.kind, change.change, changes.notes) == expected
    assert GitRepository(project.path).content(present(change.head)) == NEW


def test_a_directory_that_is_the_output_of_a_stage_is_read(project: Checkout) -> None:
    listing = listing_of(FILES)
    keep_directory(project, FILES)
    lock = lock_of("models", listing).replace(b"\n      size", b".dir\n      size")
    changes = after(project, {"dvc.lock": lock, "models/other.onnx": None})
    expected = {"models/enc.onnx", "models/sub/dec.onnx"}
    assert {each.path for each in changes.models if each.head is not None} == expected


def test_data_beside_a_model_that_dvc_keeps_are_part_of_it(project: Checkout) -> None:
    """Git's directory stays as it is: `models.dvc` lies above it."""
    files = {"enc.onnx": model_with_data("enc.onnx.data"), "enc.onnx.data": b"\0" * 64}
    before = {"models.dvc": keep_directory(project, files), "models/README": b"x"}
    files["enc.onnx.data"] = b"\1" * 64
    (change,) = after(project, before, {"models.dvc": keep_directory(project, files)}).models
    assert (change.path, change.kind) == ("models/enc.onnx", "modified")


@pytest.mark.parametrize("missing", ["base", "head"])
def test_a_listing_that_one_side_lacks_makes_no_model_new_or_deleted(
    project: Checkout, missing: str
) -> None:
    before = {"models.dvc": keep_directory(project, FILES), "models/other.onnx": None}
    files = {**FILES, "enc.onnx": NEW}
    after_ = {"models.dvc": keep_directory(project, files)}
    keep_listing(project, listing_of(FILES if missing == "base" else files)).unlink()
    changes = after(project, before, after_)
    expected = {"models/enc.onnx": "modified", "models/sub/dec.onnx": "modified"}
    assert {each.path: each.kind for each in changes.models} == expected
    side = present(changes.models[0].base if missing == "base" else changes.models[0].head)
    ask = "dvc pull models" if missing == "head" else f"checkout {side.revision} && dvc fetch "
    with pytest.raises(ModelError, match=f"its listing is not in the cache.*{ask}"):
        GitRepository(project.path).content(side)


def test_a_directory_may_be_listed_in_its_dvc_file_as_for_versions(project: Checkout) -> None:
    def listed(body: bytes) -> dict[str, bytes | None]:
        keep_in_dvc(project, body)
        files = [{"relpath": "sub/enc.onnx", "md5": md5_of(body), "cloud": {"s3": {"etag": "x"}}}]
        outs = [{"path": "models", "hash": "md5", "files": files}]
        return {"models.dvc": json.dumps({"outs": outs}).encode()}

    (change,) = after(project, {**listed(OLD), "models/other.onnx": None}, listed(NEW)).models
    assert (change.path, change.change) == ("models/sub/enc.onnx", "weights-only")
    told = after(project, {"models.dvc": b"outs: [{path: models, files: [{relpath: a.onnx}]}]"})
    assert told.notes[0].startswith("models.dvc: models (a directory without md5) changed")


def test_what_the_base_lacks_is_not_told_as_another_file_of_the_head(project: Checkout) -> None:
    """After a `dvc pull` the working tree has the head's model, and no pull gets the base's."""
    base = project.commit({"models/enc.onnx.dvc": dvc_file_of("enc.onnx", OLD)})
    project.commit({"models/enc.onnx.dvc": dvc_file_of("enc.onnx", NEW)})
    write(project.path / "models" / "enc.onnx", NEW)
    repository = GitRepository(project.path)
    with pytest.raises(ModelError) as raised:
        repository.content(GitModelReader(repository).models(base)["models/enc.onnx"])
    assert str(raised.value) == (
        f"models/enc.onnx at {base[:12]}: only its .dvc file is here. Run: git checkout {base} "
        "&& dvc fetch models/enc.onnx.dvc && git checkout -"
    )


@pytest.mark.parametrize(
    "listing",
    [
        b'[{"md5": "\xff", "relpath": "enc.onnx"}]',
        b"[",
        b'[{"md5": "' + b"0" * 32 + b'", "relpath": "../x.onnx"}]',
        b'[{"md5": "' + b"0" * 32 + b'", "relpath": "/x.onnx"}]',
        b'[{"md5": "' + b"0" * 32 + b'.dir", "relpath": "x.onnx"}]',
        b'[{"md5": "../../secret", "relpath": "x.onnx"}]',
        json.dumps([{"md5": digit * 32, "relpath": "x.onnx"} for digit in "12"]).encode(),
    ],
)
def test_a_listing_unlike_dvcs_own_lists_nothing(project: Checkout, listing: bytes) -> None:
    keep_listing(project, listing)
    changes = after(project, {"models.dvc": directory_file(listing)})
    assert [note.partition(" (")[0] for note in changes.notes] == ["models"]


def test_a_listing_with_another_digest_lists_nothing(project: Checkout) -> None:
    tracked = keep_directory(project, FILES)
    keep_listing(project, listing_of(FILES)).write_bytes(listing_of({"enc.onnx": NEW}))
    assert [note[:6] for note in after(project, {"models.dvc": tracked}).notes] == ["models"]


def test_one_listing_is_not_read_for_thousands_of_directories(
    project: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tunegate.system.git.dvc._MAX_LISTINGS_BYTES", 1)
    keep_directory(project, FILES)
    files: dict[str, bytes | None] = {
        f"models/{name}.dvc": directory_file(listing_of(FILES), name) for name in ("a", "b")
    }
    changes = after(project, {**files, "models/other.onnx": None})
    expected = {"models/a/enc.onnx", "models/a/sub/dec.onnx"}
    assert {change.path for change in changes.models} == expected
    assert any(note.startswith("models/b (a directory that DVC keeps") for note in changes.notes)
