from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repository import Checkout, new_repository
from tunegate.errors import ConfigError
from tunegate.project import open_project
from tunegate.review.config_file import config_at, path_inside
from tunegate.settings import Settings
from tunegate.system.git.repository import GitRepository

NAME = "tunegate.yaml"
TEXT = b"models: [{path: m.onnx}]\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = new_repository(tmp_path / "r")
    made.commit({NAME: TEXT, "ci/gate.yaml": TEXT})
    return made


def test_the_file_is_read_as_the_revision_has_it(checkout: Checkout) -> None:
    checkout.commit({NAME: None})
    repository = GitRepository(checkout.path)
    before = config_at(repository, checkout.git("rev-parse", "HEAD~1"), NAME)
    assert before.config is not None
    assert before.config.models[0].path == "m.onnx"
    after = config_at(repository, checkout.git("rev-parse", "HEAD"), NAME)
    assert (after.config, after.problem) == (None, "")


@pytest.mark.parametrize(
    ("content", "problem"), [(b"models: [", "line 1"), (b"\xff", "not UTF-8"), (b"", "empty")]
)
def test_a_broken_file_is_a_problem_and_no_exception(
    checkout: Checkout, content: bytes, problem: str
) -> None:
    commit = checkout.commit({NAME: content})
    found = config_at(GitRepository(checkout.path), commit, NAME)
    assert found.config is None
    assert problem in found.problem
    assert f"{NAME} at {commit[:12]}" in found.problem


def test_a_link_in_a_revision_is_not_followed(checkout: Checkout) -> None:
    (checkout.path / NAME).unlink()
    (checkout.path / NAME).symlink_to("ci/gate.yaml")
    commit = checkout.commit({})
    found = config_at(GitRepository(checkout.path), commit, NAME)
    assert (found.config, "no file but a link" in found.problem) == (None, True)


def test_a_file_of_the_checkout_has_its_path_there(checkout: Checkout, tmp_path: Path) -> None:
    root = checkout.path
    assert path_inside(root, root / "ci" / ".." / NAME) == NAME
    assert path_inside(root, tmp_path / "trusted.yaml") is None
    (tmp_path / "way-in").symlink_to(root)
    assert path_inside(root, tmp_path / "way-in" / NAME) == NAME


@pytest.mark.parametrize("linked", [NAME, "ci"])
def test_a_link_on_the_way_is_refused_wherever_it_leads(
    checkout: Checkout, tmp_path: Path, linked: str
) -> None:
    """Else a pull request could lead to a file outside, which is trusted."""
    root = checkout.path
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "gate.yaml").write_bytes(TEXT)
    place = root / linked
    place.rename(tmp_path / "away")
    place.symlink_to(outside / "gate.yaml" if linked == NAME else outside)
    path = place if linked == NAME else place / "gate.yaml"
    with pytest.raises(ConfigError, match=f"{linked} is a symbolic link"):
        path_inside(root, path)


@pytest.mark.parametrize("path", ["deps/tunegate.yaml", "deps/ci/tunegate.yaml"])
def test_a_configuration_in_a_submodule_is_refused(checkout: Checkout, path: str) -> None:
    """Its commit, and so the rules, would be what the change says."""
    commit = checkout.commit({"other": b"x"})
    checkout.git("update-index", "--add", "--cacheinfo", f"160000,{commit},deps")
    place = checkout.path / path
    place.parent.mkdir(parents=True)
    place.write_bytes(TEXT)
    settings = Settings(repository=checkout.path, config=place)
    with pytest.raises(ConfigError) as raised:
        open_project(settings)
    assert str(raised.value) == (
        f"{path}: deps is a submodule. Keep the configuration in this repository."
    )


def test_a_revision_with_a_submodule_in_the_way_has_a_problem(checkout: Checkout) -> None:
    commit = checkout.commit({"other": b"x"})
    checkout.git("update-index", "--add", "--cacheinfo", f"160000,{commit},deps")
    checkout.git("commit", "-q", "-m", "a submodule")
    head = checkout.git("rev-parse", "HEAD")
    found = config_at(GitRepository(checkout.path), head, "deps/ci/tunegate.yaml")
    assert found.problem == f"deps/ci/tunegate.yaml at {head[:12]}: deps is a submodule"
