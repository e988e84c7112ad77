"""Watched lock files, where nothing that reads them is installed."""

from pathlib import Path

import pytest

from tests.plugins.registered_plugin import nothing_installed
from tests.support.git_repository import new_repository
from tests.support.small_onnx import conv_model
from tunegate import upgrades
from tunegate.ci.registry import opened_host
from tunegate.cli.handlers.doctor_checks import files_check
from tunegate.cli.parse import named_command
from tunegate.errors import ConfigError
from tunegate.known_extras import missing, refuse_missing_ci
from tunegate.project import open_project
from tunegate.settings import Settings

CONFIG = b"models: [{path: m.onnx}]\n"


@pytest.fixture
def nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrades, "UPGRADES_GROUP", "tunegate.of-nobody")


@pytest.mark.usefixtures("nothing_is_installed")
@pytest.mark.parametrize("side", ["base", "head"])
def test_lock_files_that_are_watched_are_never_left_unread(tmp_path: Path, side: str) -> None:
    checkout = new_repository(tmp_path / "r")
    watching = CONFIG + b"watch: {files: [r.txt]}\n"
    model = conv_model().SerializeToString()
    both = (watching, CONFIG) if side == "base" else (CONFIG, watching)
    base, _ = (
        checkout.commit({"m.onnx": model, "tunegate.yaml": config, "r.txt": b"a==1\n"})
        for config in both
    )
    settings = Settings(repository=checkout.path, base=base)
    with pytest.raises(ConfigError, match=r'pip install "tunegate\[upgrades\]"'):
        open_project(settings).review(settings)


@pytest.mark.usefixtures("nothing_is_installed")
def test_nothing_is_asked_for_where_no_file_is_watched(tmp_path: Path) -> None:
    checkout = new_repository(tmp_path / "r")
    model = conv_model().SerializeToString()
    base = checkout.commit({"m.onnx": model, "tunegate.yaml": CONFIG})
    checkout.commit({"m.onnx": conv_model(seed=1).SerializeToString()})
    settings = Settings(repository=checkout.path, base=base)
    review = open_project(settings).review(settings)
    assert [change.kind for change in review.changes.models] == ["modified"]
    assert review.watched is upgrades.NOTHING_WATCHED


@pytest.mark.usefixtures("nothing_is_installed")
def test_doctor_says_what_to_install(tmp_path: Path) -> None:
    checkout = new_repository(tmp_path / "r")
    watching = CONFIG + b"watch: {files: [r.txt]}\n"
    files = {"m.onnx": conv_model().SerializeToString(), "tunegate.yaml": watching}
    checkout.commit({**files, "r.txt": b"a==1\n"})
    (check,) = files_check(open_project(Settings(repository=checkout.path)), [])
    assert (check.name, check.ok) == ("watch", False)
    assert "tunegate[upgrades]" in check.detail


# The line that says what to install, wherever a user may name what an extra has.

AZURE = {"TF_BUILD": "True"}


@pytest.fixture
def core_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_installed(tmp_path, monkeypatch)


def refused(asked: str) -> str:
    with pytest.raises(ConfigError) as caught:
        opened_host(asked, AZURE)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.usefixtures("core_alone")
def test_a_ci_that_is_named_says_its_extra() -> None:
    assert refused("azure") == (
        'CI azure is not installed. Install it: pip install "tunegate[ci-hosts]"'
    )


@pytest.mark.usefixtures("core_alone")
def test_a_job_of_a_known_ci_is_not_taken_for_one_of_no_ci() -> None:
    line = refused("auto")
    assert line.startswith("this is a job of azure (TF_BUILD is set)")
    assert line.endswith('pip install "tunegate[ci-hosts]"')
    assert type(opened_host("none", AZURE)).__name__ == "NoCiHost"


@pytest.mark.usefixtures("core_alone")
def test_half_of_what_a_job_has_is_no_job() -> None:
    refuse_missing_ci({"JENKINS_URL": "https://ci"}, ())
    with pytest.raises(ConfigError, match="a job of jenkins"):
        refuse_missing_ci({"JENKINS_URL": "https://ci", "BUILD_TAG": "j-1"}, ())
    refuse_missing_ci(AZURE, ("azure",))


@pytest.mark.usefixtures("core_alone")
def test_a_name_that_no_extra_has_is_left_to_whoever_asks() -> None:
    assert missing("command", "detct") == ""
    assert missing("runtime", "azure") == ""
    with pytest.raises(ConfigError, match="Did you mean detect"):
        named_command(["detct"])


@pytest.mark.usefixtures("core_alone")
def test_a_command_and_an_executor_are_told_as_what_they_are() -> None:
    assert missing("command", "study").startswith("tunegate study is not installed. Install")
    assert missing("executor", "ray").startswith("executor ray is not installed. Install")
