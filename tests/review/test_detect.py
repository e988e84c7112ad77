"""Changes of the configured models, in real repositories."""

from pathlib import Path

import msgspec
import pytest

from tests.support.git_repository import Checkout, new_repository
from tests.support.models.detected_changes import (
    CONFIG,
    after,
    content,
    digests,
    kinds,
    project_of,
    reader_of,
)
from tests.support.models.external_data import model_with_data
from tests.support.models.pointer_files import lfs_pointer_to
from tests.support.present import present
from tests.support.small_onnx import conv_model
from tunegate.artifacts.changes import ChangeSet, Revisions
from tunegate.config import AccuracyConfig, Config, ModelConfig, ProfileConfig, TargetConfig
from tunegate.errors import ConfigError
from tunegate.review.config_file import parse_config
from tunegate.review.detect import detect


@pytest.fixture
def project(tmp_path: Path) -> Checkout:
    return project_of(tmp_path)


def test_a_change_elsewhere_changes_no_model(project: Checkout) -> None:
    changes, opened = after(project, {"src/code.py": b"pass", "elsewhere.onnx": b"not ours"})
    assert changes.models == ()
    assert changes.unchanged == ("models/conv.onnx", "models/product.onnx")
    assert opened == []


def test_only_the_changed_model_is_opened(project: Checkout) -> None:
    changes, opened = after(project, {"models/conv.onnx": content(conv_model(seed=1))})
    assert [change.path for change in changes.models] == ["models/conv.onnx"]
    assert changes.unchanged == ("models/product.onnx",)
    assert opened == ["models/conv.onnx"] * 2


def test_other_weights_are_weights_only(project: Checkout) -> None:
    (change,) = after(project, {"models/conv.onnx": content(conv_model(seed=1))})[0].models
    assert (change.kind, change.change) == ("modified", "weights-only")
    assert change.reason == "the graph is the same, its weights are not"
    assert digests(change)[0] == digests(change)[1]


def test_another_graph_is_structural(project: Checkout) -> None:
    (change,) = after(project, {"models/conv.onnx": content(conv_model(out=16))})[0].models
    assert (change.kind, change.change) == ("modified", "structural")
    assert digests(change)[0] != digests(change)[1]


@pytest.mark.parametrize("path", ["models/conv.onnx", "models/new.onnx"])
def test_a_head_that_is_no_onnx_file_is_an_error_before_anything_is_built(
    project: Checkout, path: str
) -> None:
    (change,) = after(project, {path: b"broken"})[0].models
    assert (change.kind, change.head) == ("unreadable", None)
    assert change.reason == (
        "not an ONNX file, or cut short, in the head: the model cannot be checked. Export it again"
    )


def test_a_new_model_is_added(project: Checkout) -> None:
    changes, opened = after(project, {"models/deep/new.onnx": content(conv_model(seed=2))})
    (change,) = changes.models
    assert (change.kind, change.change, change.base) == ("added", None, None)
    assert change.targets == ("cpu",)
    assert digests(change)[1] is not None
    assert opened == ["models/deep/new.onnx"]


def test_a_removed_model_is_deleted_and_not_opened(project: Checkout) -> None:
    changes, opened = after(project, {"models/conv.onnx": None})
    (change,) = changes.models
    assert (change.kind, change.head, change.reason) == ("deleted", None, "not in the head")
    assert opened == []


def test_a_removed_model_is_told_as_loosened_where_the_base_has_rules(project: Checkout) -> None:
    told = after(project, {"models/conv.onnx": None})[0].policy_changes
    assert [(each.model, each.new, each.effect) for each in told] == [
        ("models/conv.onnx", "deleted", "loosened")
    ]
    revisions = Revisions(base=project.git("rev-parse", "HEAD~1"), head="HEAD")
    assert detect(reader_of(project), revisions, CONFIG, None).policy_changes == ()


def test_a_renamed_model_has_nothing_to_do(project: Checkout) -> None:
    moved = {"models/conv.onnx": None, "models/new é.onnx": content(conv_model())}
    changes, opened = after(project, moved)
    (change,) = changes.models
    assert (change.path, change.kind, change.change) == ("models/new é.onnx", "renamed", None)
    assert change.reason == "renamed from models/conv.onnx, same content"
    assert opened == []


def test_a_renamed_and_changed_model_is_compared_with_what_it_was(project: Checkout) -> None:
    moved = {"models/conv.onnx": None, "models/b.onnx": content(conv_model(seed=1))}
    (change,) = after(project, moved)[0].models
    expected = ("models/b.onnx", "modified", "weights-only")
    assert (change.path, change.kind, change.change) == expected
    assert present(change.base).path == "models/conv.onnx"
    assert "compared with models/conv.onnx, which it replaces" in change.reason


def test_a_copy_is_added_and_the_original_unchanged(project: Checkout) -> None:
    changes, _ = after(project, {"models/copy.onnx": content(conv_model())})
    assert kinds(changes) == {"models/copy.onnx": "added"}
    assert "models/conv.onnx" in changes.unchanged


def test_of_two_equal_models_each_is_renamed_once(project: Checkout) -> None:
    same = content(conv_model())
    project.commit({"models/twin.onnx": same})
    moved = {"models/conv.onnx": None, "models/twin.onnx": None}
    changes, _ = after(project, {**moved, "models/x.onnx": same, "models/y.onnx": same})
    assert [change.reason for change in changes.models] == [
        "renamed from models/conv.onnx, same content",
        "renamed from models/twin.onnx, same content",
    ]


def test_a_model_that_moves_out_of_the_configuration_is_still_checked(project: Checkout) -> None:
    moved = {"models/conv.onnx": None, "attic/conv.onnx": content(conv_model(out=16))}
    changes = after(project, moved)[0]
    assert kinds(changes) == {"attic/conv.onnx": "modified"}
    (told,) = changes.policy_changes
    assert (told.model, told.new) == ("attic/conv.onnx", "no entry matches it")


# data files ----------------------------------------------------------------------


def test_a_change_of_its_data_is_a_change_of_the_model(project: Checkout) -> None:
    project.commit(
        {"models/big.onnx": model_with_data("big.onnx.data"), "models/big.onnx.data": b"1"}
    )
    changes, opened = after(project, {"models/big.onnx.data": b"2"})
    (change,) = changes.models
    assert (change.path, change.change) == ("models/big.onnx", "weights-only")
    assert [file.path for file in present(change.head).external] == ["models/big.onnx.data"]
    assert set(opened) == {"models/big.onnx"}


def test_what_lies_beside_a_model_but_is_not_its_data_changes_nothing(project: Checkout) -> None:
    changes, opened = after(project, {"models/labels.txt": b"cat", "models/.keep": b""})
    assert (changes.models, opened) == ((), [])


@pytest.mark.parametrize("name", ["w.md", ".w", "w.onnx", "deep/w.py", ".hidden/w.yaml"])
def test_a_data_file_may_have_any_name(project: Checkout, name: str) -> None:
    project.commit({"models/big.onnx": model_with_data(name), f"models/{name}": b"1"})
    changes, _ = after(project, {f"models/{name}": b"2"})
    assert kinds(changes)["models/big.onnx"] == "modified"


def test_a_model_moves_with_its_data(project: Checkout) -> None:
    model, weights = model_with_data("w.bin"), b"1" * 10
    project.commit({"models/v1/big.onnx": model, "models/v1/w.bin": weights})
    gone = {"models/v1/big.onnx": None, "models/v1/w.bin": None}
    changes, _ = after(project, {**gone, "models/v2/big.onnx": model, "models/v2/w.bin": weights})
    assert kinds(changes) == {"models/v2/big.onnx": "renamed"}


def test_a_model_that_moves_to_other_data_is_modified(project: Checkout) -> None:
    model = model_with_data("w.bin")
    project.commit({"models/v1/big.onnx": model, "models/v1/w.bin": b"1"})
    gone = {"models/v1/big.onnx": None, "models/v1/w.bin": None}
    changes, _ = after(project, {**gone, "models/v2/big.onnx": model, "models/v2/w.bin": b"2"})
    (change,) = changes.models
    expected = ("models/v2/big.onnx", "modified", "weights-only")
    assert (change.path, change.kind, change.change) == expected


# the configuration ---------------------------------------------------------------


def test_a_new_target_concerns_every_model_that_uses_it(project: Checkout) -> None:
    targets = (TargetConfig(name="cpu"), TargetConfig(name="many", threads=8))
    changes, _ = after(project, {}, msgspec.structs.replace(CONFIG, targets=targets))
    assert [change.targets for change in changes.models] == [("cpu", "many")] * 2


def test_a_budget_that_alone_is_tightened_concerns_its_models(project: Checkout) -> None:
    (entry,) = CONFIG.models
    loose, strict = (
        Config(models=(msgspec.structs.replace(entry, accuracy=AccuracyConfig(max_error=error)),))
        for error in (5.0, 1.0)
    )
    changes, _ = after(project, {}, strict, loose)
    assert [(change.change, change.reason) for change in changes.models] == [
        ("config", "its inputs, targets or accuracy changed in the configuration")
    ] * 2
    changes, _ = after(project, {}, loose, strict)
    assert changes.models == ()
    assert {change.effect for change in changes.policy_changes} == {"loosened"}


def test_a_model_that_becomes_configured_is_checked(project: Checkout) -> None:
    both = Config(models=(*CONFIG.models, ModelConfig(path="elsewhere.onnx")))
    changes, _ = after(project, {}, both)
    assert kinds(changes) == {"elsewhere.onnx": "modified"}


def test_a_comment_in_the_configuration_changes_nothing(project: Checkout) -> None:
    text = "models:\n  - path: models/**/*.onnx\n"
    old, new = (
        parse_config(text, "old"),
        parse_config(f"# a comment\n{text}budget: {{minutes: 3}}\n", "new"),
    )
    changes, opened = after(project, {"tunegate.yaml": b"# a comment"}, new, old)
    assert (changes.models, opened) == ((), [])


def test_an_unreadable_configuration_of_the_base_is_noted(project: Checkout) -> None:
    head = project.git("rev-parse", "HEAD")
    changes = detect(reader_of(project), Revisions(base=head, head=head), CONFIG, None)
    assert changes.notes == (
        "the base has no configuration that can be read: the head's judges this change",
    )


def test_without_a_base_every_model_is_added_and_it_is_said_why(project: Checkout) -> None:
    head = project.git("rev-parse", "HEAD")
    revisions = Revisions(base=None, head=head, reason="no parent")
    changes = detect(reader_of(project), revisions, CONFIG, None)
    assert set(kinds(changes).values()) == {"added"}
    assert changes.notes == ("no base to compare with (no parent): every model counts as added",)


def test_a_glob_that_matches_nothing_is_one_clear_line(project: Checkout) -> None:
    wrong = Config(models=(*CONFIG.models, ModelConfig(path="nets/*.onnx")))
    with pytest.raises(ConfigError) as raised:
        after(project, {}, wrong)
    assert str(raised.value) == (
        "tunegate.yaml: models: path nets/*.onnx matches no ONNX file of the revision; "
        "the nearest: models/conv.onnx, elsewhere.onnx, models/product.onnx. "
        "Correct the glob, or commit the model (also when it is stored by LFS or DVC)."
    )


def test_a_change_asks_for_no_more_gates_of_a_model_than_a_runner_bears(project: Checkout) -> None:
    names = [f"m{at}" for at in range(5)]
    profiles = {f"p{at}": ProfileConfig(inputs={}) for at in range(13)}
    wide = Config(
        models=(ModelConfig(path="models/conv.onnx", profiles=profiles),),
        targets=tuple(TargetConfig(name=name) for name in names),
    )
    with pytest.raises(ConfigError, match="has 13 profiles on 6 targets; a change may"):
        after(project, {}, wide)
    revisions = Revisions(base="HEAD", head=project.git("rev-parse", "HEAD"), reason="given")
    assert detect(reader_of(project), revisions, wide, wide).models == ()


def test_every_glob_that_matches_nothing_is_told_at_once(project: Checkout) -> None:
    wrong = Config(models=(ModelConfig(path="nets/*.onnx"), ModelConfig(path="b.onnx")))
    with pytest.raises(ConfigError) as raised:
        after(project, {}, wrong)
    assert "path nets/*.onnx matches" in str(raised.value)
    (other,) = raised.value.others
    assert other.startswith("tunegate.yaml: models: path b.onnx matches no ONNX file")


def test_a_glob_into_a_submodule_is_told_how_its_models_are_gated(project: Checkout) -> None:
    project.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendor/models")
    project.git("commit", "-q", "-m", "a submodule")
    wrong = Config(models=(*CONFIG.models, ModelConfig(path="vendor/**/*.onnx")))
    revisions = Revisions(base=None, head=project.git("rev-parse", "HEAD"), reason="given")
    with pytest.raises(ConfigError) as raised:
        detect(reader_of(project), revisions, wrong, None)
    assert str(raised.value).endswith(
        "Submodules are repositories of their own (vendor/models): gate one with --repository."
    )


def test_a_glob_whose_last_model_is_deleted_is_right(project: Checkout) -> None:
    only = Config(models=(ModelConfig(path="models/conv.onnx"),))
    assert kinds(after(project, {"models/conv.onnx": None}, only)[0]) == {
        "models/conv.onnx": "deleted"
    }


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "enc",
            "Enc",
            "models/Enc.onnx and models/enc.onnx are one file on a system that does not",
        ),
        ("\u00e9", "e\u0301", "'models/e\\u0301.onnx' and 'models/\\xe9.onnx' are one file on a"),
    ],
)
def test_a_model_beside_one_that_is_the_same_file_elsewhere_is_a_line(
    tmp_path: Path, before: str, after: str, said: str
) -> None:
    """A checkout on macOS or Windows has one file of both, which may be the one nobody gates."""
    made = new_repository(tmp_path / "r")
    base = made.commit({f"models/{before}.onnx": content(conv_model(seed=1))})
    head = made.commit({f"models/{after}.onnx": content(conv_model(seed=2))})
    config = config_of("models/*.onnx")
    reader = reader_of(made)
    (note,) = detect(reader, Revisions(base=base, head=head), config, config).notes
    assert note.startswith(said)
    assert detect(reader, Revisions(base=head, head=head), config, config).notes == ()


# Numbered versions of models, in real repositories.

NUMBERED, PLAIN = "models/*/{version}/model.onnx", "models/**/*.onnx"


def config_of(path: str) -> Config:
    return parse_config(f"models: [{{path: '{path}'}}]\ntargets: [{{name: cpu}}]\n", "t.yaml")


def enc(version: str, seed: int | None) -> dict[str, bytes | None]:
    path = f"models/enc/{version}/model.onnx"
    return {path: None if seed is None else content(conv_model(seed=seed))}


@pytest.fixture
def numbered(tmp_path: Path) -> Checkout:
    made = new_repository(tmp_path / "r")
    made.commit({**enc("1", 1), **enc("9", 9), **enc("10", 10)})
    return made


def versions_after(numbered: Checkout, files: dict[str, bytes | None], path: str) -> ChangeSet:
    revisions = Revisions(base=numbered.git("rev-parse", "HEAD"), head=numbered.commit(files))
    config = config_of(path)
    return detect(reader_of(numbered), revisions, config, config)


def test_a_new_version_is_compared_with_the_highest_earlier_one(numbered: Checkout) -> None:
    changes = versions_after(numbered, enc("11", 11), NUMBERED)
    (change,) = changes.models
    assert (change.path, change.kind) == ("models/enc/11/model.onnx", "modified")
    assert present(change.base).path == "models/enc/10/model.onnx"
    told = "compared with models/enc/10/model.onnx, the highest version in the base"
    assert change.reason.endswith(told)
    assert changes.notes == (f"models/enc/11/model.onnx is {told}",)


@pytest.mark.parametrize(
    ("version", "before"),
    [
        ("010", "10"),
        ("9.0", "9"),
        ("v11", "10"),
        ("10-rc1", "9"),
        ("0", "1"),
        ("0" * 20 + "12", "10"),
    ],
)
def test_no_number_makes_a_version_of_a_model_that_there_is_a_new_model(
    numbered: Checkout, version: str, before: str
) -> None:
    """A server takes 010 for 10, and so it would ship a model that is compared with nothing."""
    (change,) = versions_after(numbered, enc(version, 3), NUMBERED).models
    assert present(change.base).path == f"models/enc/{before}/model.onnx"


def test_a_version_in_place_of_an_old_one_is_compared_with_the_latest(numbered: Checkout) -> None:
    """The bytes of what is deleted do not make it a rename."""
    changes = versions_after(numbered, {**enc("11", 1), **enc("1", None)}, NUMBERED)
    by_path = {change.path: change for change in changes.models}
    assert present(by_path["models/enc/11/model.onnx"].base).path == "models/enc/10/model.onnx"
    assert by_path["models/enc/1/model.onnx"].kind == "deleted"


def test_the_newest_versions_are_compared_whatever_their_numbers(numbered: Checkout) -> None:
    """With 10 deleted a server goes from 10 to 9.5, and 9 may be as slow as that."""
    files = {**enc("10", None), **enc("9.5", 3), **enc("0.5", 4)}
    changes = versions_after(numbered, files, NUMBERED)
    before = {change.path: change.base.path for change in changes.models if change.base}
    assert before["models/enc/9.5/model.onnx"] == "models/enc/10/model.onnx"
    assert before["models/enc/0.5/model.onnx"] == "models/enc/1/model.onnx"
    told = "compared with models/enc/1/model.onnx, the nearest version in the base"
    assert changes.notes[0] == f"models/enc/0.5/model.onnx is {told}"


def test_of_one_version_in_two_directories_the_last_by_name_counts(numbered: Checkout) -> None:
    numbered.commit({**enc("12", 12), **enc("012", 13)})
    changes = versions_after(numbered, {**enc("13", 14), **enc("013", 15)}, NUMBERED)
    before = {change.path: present(change.base).path for change in changes.models}
    assert {*before.values()} == {"models/enc/12/model.onnx"}
    assert len(before) == 2


@pytest.mark.parametrize(
    ("channels", "was"), [(16, None), (8, "models/enc/1/model.onnx")], ids=["other", "same"]
)
def test_a_new_model_with_another_graph_is_none_whose_later_version_stays(
    numbered: Checkout, channels: int, was: str | None
) -> None:
    """A version that nobody serves any more is deleted, and another model's file has its name."""
    model = content(conv_model(seed=3, out=channels))
    files: dict[str, bytes | None] = {"models/dec/1/model.onnx": model}
    changes = versions_after(numbered, {**enc("1", None), **files}, NUMBERED)
    by_path = {change.path: change.base for change in changes.models}
    base = by_path["models/dec/1/model.onnx"]
    assert (base.path if base else None) == was
    assert ("models/enc/1/model.onnx" in by_path) == (was is None)


@pytest.mark.parametrize(
    ("files", "before"),
    [
        (enc("10", None), {"9": "10"}),
        ({**enc("10", None), **enc("9", 3)}, {"9": "10"}),
        ({**enc("10", None), **enc("9", 10)}, {"9": "10"}),
        ({**enc("10", None), **enc("9", None)}, {"1": "10", "9": None}),
        ({**enc("10", None), **enc("latest", 3)}, {"9": "10", "latest": "10"}),
        ({**enc("10", None), **enc("5", 10)}, {"9": "10", "5": "1"}),
        ({**enc("1", None), **enc("9", None)}, {"1": None, "9": None}),
        ({**enc("1", None), **enc("9", None), **enc("10", None)}, dict.fromkeys(("1", "10", "9"))),
    ],
)
def test_the_version_that_a_server_falls_back_to_is_compared_with_the_one_it_had(
    numbered: Checkout, files: dict[str, bytes | None], before: dict[str, str | None]
) -> None:
    """Also where nobody touched its bytes: an older version may be ten times slower."""
    numbered.commit({"models/b/1/model.onnx": b"slow", "models/b/2/model.onnx": b"fast"})
    changes = versions_after(numbered, files, NUMBERED)
    path = "models/enc/{}/model.onnx".format
    assert {
        each.path: each.base.path if each.base and each.head else None for each in changes.models
    } == {path(version): path(was) if was else None for version, was in before.items()}
    assert [each.model for each in changes.policy_changes if each.new == "deleted"] == [
        path(version) for version, was in before.items() if was is None
    ]
    assert not {change.path for change in changes.models} & {*changes.unchanged}


@pytest.mark.parametrize("model", [b"", lfs_pointer_to(content(conv_model(seed=3)))])
def test_a_highest_version_that_is_emptied_or_a_pointer_is_still_the_highest(
    numbered: Checkout, model: bytes
) -> None:
    path = "models/enc/10/model.onnx"
    (change,) = versions_after(numbered, {path: model}, NUMBERED).models
    assert (change.kind, change.path, present(change.base).path) == ("modified", path, path)


def test_a_highest_version_that_dvc_may_keep_is_not_taken_for_deleted(numbered: Checkout) -> None:
    tracked: dict[str, bytes | None] = {"models/enc/10.dvc": b"outs: [{path: '10', etag: 0a.dir}]"}
    changes = versions_after(numbered, {**enc("10", None), **tracked}, NUMBERED)
    assert kinds(changes)["models/enc/10/model.onnx"] == "unreadable"


def test_the_first_version_of_another_model_is_new(numbered: Checkout) -> None:
    model: dict[str, bytes | None] = {"models/other/2/model.onnx": content(conv_model(seed=1))}
    (change,) = versions_after(numbered, model, NUMBERED).models
    assert change.kind == "added"


def test_without_the_pattern_a_version_that_is_not_compared_is_a_line(numbered: Checkout) -> None:
    changes = versions_after(numbered, enc("11", 11), PLAIN)
    assert [change.kind for change in changes.models] == ["added"]
    (note,) = changes.notes
    assert note == (
        "models/enc/11/model.onnx is new, so it is not compared with models/enc/10/model.onnx: "
        "write path: models/enc/{version}/model.onnx in models to compare each version with the "
        "one before it"
    )
    (note,) = versions_after(numbered, enc("10", None), PLAIN).notes
    assert note.startswith(
        "models/enc/10/model.onnx is deleted, and models/enc/11/model.onnx stays without being"
    )
    (note,) = versions_after(numbered, enc("11", None), PLAIN).notes
    assert note.startswith(
        "models/enc/11/model.onnx is deleted, and models/enc/9/model.onnx stays without being"
    )


def test_models_whose_names_have_numbers_are_no_versions(numbered: Checkout) -> None:
    names = {f"models/resnet{depth}.onnx": content(conv_model(seed=depth)) for depth in (18, 50)}
    numbered.commit({"models/resnet18.onnx": names["models/resnet18.onnx"]})
    changes = versions_after(
        numbered, {"models/resnet50.onnx": names["models/resnet50.onnx"]}, PLAIN
    )
    assert changes.notes == ()


def test_only_one_number_can_be_the_version() -> None:
    with pytest.raises(ConfigError, match=r"\{version\} stands twice"):
        config_of("models/{version}/{version}.onnx")


def test_a_change_adds_no_more_models_than_a_run_can_gate(
    project: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that no pattern covers, and files that only move, are no new models."""
    monkeypatch.setattr("tunegate.review.detect.MAX_NEW_MODELS", 2)
    body = content(conv_model())
    elsewhere: dict[str, bytes | None] = {f"other/{i}.onnx": b"" for i in range(5)}
    changes, _ = after(project, {f"models/{i}.onnx": body for i in range(2)} | elsewhere)
    assert len(changes.models) == 2
    moved: dict[str, bytes | None] = {f"models/moved/{i}.onnx": body for i in range(3)}
    gone: dict[str, bytes | None] = {f"models/{i}.onnx": None for i in range(2)}
    assert len(after(project, moved | gone)[0].models) == 3
    with pytest.raises(ConfigError, match=r"models: 3 new models, such as models/0.onnx; a change"):
        after(project, {f"models/{i}.onnx": b"" for i in range(3)})
