"""Numbered versions of models, in real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repository import Checkout, new_repository
from tests.support.models.detected_changes import content, reader_of
from tests.support.small_onnx import conv_model
from tunegate.artifacts.changes import ChangeSet, Revisions
from tunegate.config import Config
from tunegate.errors import ConfigError
from tunegate.review.config_file import parse_config
from tunegate.review.detect import detect
from tunegate.review.globs import earlier_versions

NUMBERED, PLAIN = "models/*/{version}/model.onnx", "models/**/*.onnx"


def config_of(path: str) -> Config:
    return parse_config(f"models: [{{path: '{path}'}}]\ntargets: [{{name: cpu}}]\n", "t.yaml")


def enc(version: str, seed: int | None) -> dict[str, bytes | None]:
    path = f"models/enc/{version}/model.onnx"
    return {path: None if seed is None else content(conv_model(seed=seed))}


@pytest.fixture
def project(tmp_path: Path) -> Checkout:
    made = new_repository(tmp_path / "r")
    made.commit({**enc("1", 1), **enc("9", 9), **enc("10", 10)})
    return made


def after(project: Checkout, files: dict[str, bytes | None], path: str) -> ChangeSet:
    base = project.git("rev-parse", "HEAD")
    revisions = Revisions(base=base, head=project.commit(files))
    config = config_of(path)
    return detect(reader_of(project), revisions, config, config)


def test_a_new_version_is_compared_with_the_highest_earlier_one(project: Checkout) -> None:
    changes = after(project, enc("11", 11), NUMBERED)
    (change,) = changes.models
    assert (change.path, change.kind) == ("models/enc/11/model.onnx", "modified")
    assert change.base is not None
    assert change.base.path == "models/enc/10/model.onnx"
    assert change.reason.endswith("compared with models/enc/10/model.onnx, the version before it")
    assert changes.notes == ()


def test_a_version_that_replaces_an_older_one_is_still_compared_with_the_latest(
    project: Checkout,
) -> None:
    """The bytes of what is deleted do not make it a rename."""
    changes = after(project, {**enc("11", 1), **enc("1", None)}, NUMBERED)
    by_path = {change.path: change for change in changes.models}
    compared = by_path["models/enc/11/model.onnx"].base
    assert compared is not None
    assert compared.path == "models/enc/10/model.onnx"
    assert by_path["models/enc/1/model.onnx"].kind == "deleted"


def test_the_first_version_of_another_model_is_new(project: Checkout) -> None:
    model: dict[str, bytes | None] = {"models/other/2/model.onnx": content(conv_model(seed=1))}
    (change,) = after(project, model, NUMBERED).models
    assert change.kind == "added"


def test_without_the_pattern_a_version_that_is_not_compared_is_a_line(project: Checkout) -> None:
    changes = after(project, enc("11", 11), PLAIN)
    assert [change.kind for change in changes.models] == ["added"]
    (note,) = changes.notes
    assert note == (
        "models/enc/11/model.onnx is new, so it is not compared with models/enc/10/model.onnx: "
        "write path: models/enc/{version}/model.onnx in models to compare each version with the "
        "one before it"
    )
    (note,) = after(project, enc("10", None), PLAIN).notes
    assert note.startswith(
        "models/enc/10/model.onnx is deleted, and models/enc/11/model.onnx stays without being"
    )


def test_models_whose_names_have_numbers_are_no_versions(project: Checkout) -> None:
    names = {f"models/resnet{depth}.onnx": content(conv_model(seed=depth)) for depth in (18, 50)}
    project.commit({"models/resnet18.onnx": names["models/resnet18.onnx"]})
    changes = after(project, {"models/resnet50.onnx": names["models/resnet50.onnx"]}, PLAIN)
    assert changes.notes == ()


def test_only_one_number_can_be_the_version() -> None:
    with pytest.raises(ConfigError, match=r"\{version\} stands twice"):
        config_of("models/{version}/{version}.onnx")


def test_no_version_is_compared_with_a_later_one() -> None:
    found = earlier_versions(["m/1"], ["m/2"], lambda _: None)
    assert found == {}
