"""The extras of a job of the Action: named by the workflow, taken from the Action's own commit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from tunegate_environment.extras import UnknownExtraError, extras_for, locks_of

EXTRAS = ROOT / "plugin" / "extras"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, lock in (("ci_hosts", "# nothing\n"), ("ray", "ray==2.40.0 \\\n    --hash=x\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pyproject.toml").touch()
        (tmp_path / name / "requirements.lock").write_text(lock)
    (tmp_path / "no_extra").mkdir()
    return tmp_path


def test_without_a_name_the_core_is_alone(folder: Path) -> None:
    assert extras_for(folder, {}) == ()
    assert extras_for(folder, {"TUNEGATE_EXTRAS": "  "}) == ()


def test_each_name_is_a_folder_beside_the_core(folder: Path) -> None:
    found = extras_for(folder, {"TUNEGATE_EXTRAS": "ray ci-hosts ray"})
    assert found == (folder / "ray", folder / "ci_hosts")
    assert locks_of(found) == (folder / "ray" / "requirements.lock",)


@pytest.mark.parametrize("name", ["no-extra", "../ci_hosts", "/tmp", "ci_hosts", "."])
def test_any_other_name_is_refused_with_those_that_there_are(folder: Path, name: str) -> None:
    with pytest.raises(UnknownExtraError, match=r"is no extra\. There are ci-hosts, ray\."):
        extras_for(folder, {"TUNEGATE_EXTRAS": name})


def test_every_extra_of_ours_has_a_lock_that_can_be_read() -> None:
    names = " ".join(path.parent.name.replace("_", "-") for path in EXTRAS.glob("*/pyproject.toml"))
    locks_of(extras_for(EXTRAS, {"TUNEGATE_EXTRAS": names}))


def in_bootstrap(program: str, names: str) -> subprocess.CompletedProcess[str]:
    prepared = f"import sys; sys.path[:0] = [{str(ROOT / 'action')!r}]; import bootstrap\n"
    return subprocess.run(
        [sys.executable, "-I", "-c", prepared + program],
        env={**os.environ, "TUNEGATE_EXTRAS": names},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_action_imports_the_extras_that_its_workflow_names() -> None:
    shows = "import os; print(bootstrap.our_own(os.environ)['PYTHONPATH'])"
    core = [str(ROOT / name) for name in ("action", "plugin", "cache")]
    assert in_bootstrap(shows, "").stdout.strip().split(":") == core
    named = in_bootstrap(shows, "ci-hosts").stdout.strip().split(":")
    assert named == [*core, str(EXTRAS / "ci_hosts")]


def test_a_name_that_no_extra_has_ends_the_job_as_a_mistake_in_what_was_given() -> None:
    runs = "import os; sys.exit(bootstrap.main(['run'], os.environ))"
    done = in_bootstrap(runs, "nothing")
    assert done.returncode == 2
    assert '::error title=tunegate::input extras: "nothing" is no extra.' in done.stdout
