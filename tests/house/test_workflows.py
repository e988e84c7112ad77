"""Our own workflows: who may write what, and that they pass the linters."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.house.sources import ROOT

FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))
STARTER = ROOT / "plugin" / "tunegate" / "cli" / "handlers" / "workflow.yml"
PROGRAMS = Path(sys.executable).parent
PUBLIC = {"packages", "contents", "pull-requests"}
"""What others see is written with these permissions."""


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in WORKFLOWS:
        for name, job in yaml.safe_load(path.read_text())["jobs"].items():
            yield f"{path.name}: {name}", job


def test_a_workflow_has_no_permission_and_each_job_names_its_own() -> None:
    assert all(yaml.safe_load(path.read_text())["permissions"] == {} for path in WORKFLOWS)
    assert [name for name, job in jobs() if "permissions" not in job] == []


def test_what_publishes_waits_for_its_environment() -> None:
    writing = {
        name: job.get("environment")
        for name, job in jobs()
        if any(job["permissions"].get(what) == "write" for what in PUBLIC)
    }
    assert len(writing) == 5
    assert all(writing.values())
    release = dict(jobs())["release.yml: pypi"]
    assert (release["environment"], release["permissions"]) == ("pypi", {"id-token": "write"})


def test_every_action_is_pinned_by_commit_with_its_version_beside_it() -> None:
    used = re.compile(r"uses: (?!\$/)(\S+)@(\S+)(.*)")
    found = [line for path in WORKFLOWS for line in used.findall(path.read_text())]
    assert len(found) > 20
    assert [u for u in found if not re.fullmatch(r"[0-9a-f]{40}", u[1])] == []
    assert [
        u for u in found if not re.fullmatch(r" # v\d+\.\d+\.\d+", u[2].split(" zizmor")[0])
    ] == []
    commits = {(name, commit) for name, commit, _ in found}
    assert len(commits) == len({name for name, _ in commits})  # one version of each


def test_nothing_is_published_before_the_checks() -> None:
    release = yaml.safe_load((FOLDER / "release.yml").read_text())["jobs"]

    def before(name: str) -> set[str]:
        needs = release[name].get("needs", [])
        needed = [needs] if isinstance(needs, str) else needs
        return set(needed).union(*(before(other) for other in needed))

    assert all("check" in before(name) for name in release if name != "check")
    assert {"attest", "index"} <= before("pypi")
    assert "pypi" in before("publish")
    assert before("major") == set(release) - {"major"}


def test_zizmor_finds_nothing_where_it_asks_for_most() -> None:
    options = ("--offline", "--quiet", "--persona", "pedantic")
    command = [str(PROGRAMS / "zizmor"), *options, str(ROOT / ".github")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.pipelines
def test_actionlint_finds_nothing() -> None:
    """It checks expressions, needs and outputs, and has shellcheck look at each script."""
    examples = sorted((ROOT / "examples").rglob("*.yml"))
    files = map(str, [*WORKFLOWS, *examples, STARTER])
    command = [str(PROGRAMS / "actionlint"), "-no-color", "-ignore", "label .+ is unknown", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
