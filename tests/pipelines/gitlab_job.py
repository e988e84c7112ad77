"""A job of GitLab's: the checkout that a runner makes, and gitlab-ci-local in it."""

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.house.sources import ROOT
from tests.support.git_repository import Checkout
from tests.support.programs import run_program

COMPONENT = "$CI_SERVER_FQDN/$CI_PROJECT_PATH/gate@$CI_COMMIT_SHA"
_PROJECT = "https://gitlab.example.org/acme/models.git"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def with_component(origin: Path, inputs: str = "") -> None:
    """The repository offers the component and includes it, with further inputs in YAML."""
    (origin / "templates").mkdir()
    shutil.copy(ROOT / "templates" / "gate.yml", origin / "templates")
    given = f"{{tags: [gpu]{inputs and ', '}{inputs}}}"
    included = f"include:\n  - component: {COMPONENT}\n    inputs: {given}\n"
    (origin / ".gitlab-ci.yml").write_text(included)


def runner_checkout(origin: Checkout, path: Path, commit: str, *, depth: int = 20) -> Checkout:
    """Checks out as a runner does: the pipeline's own reference, shallow, detached, no branches."""
    origin.git("update-ref", "refs/pipelines/7", commit)
    path.mkdir(parents=True)
    checkout = Checkout(path)
    checkout.git("init", "-q", "--initial-branch=main")
    checkout.git("remote", "add", "origin", origin.path.as_uri())
    checkout.git("remote", "add", "gcl-origin", _PROJECT)
    refspec = "+refs/pipelines/7:refs/pipelines/7"
    limit = f"--depth={depth}"
    checkout.git("fetch", "-q", "--prune", "--no-tags", limit, "origin", refspec)
    checkout.git("checkout", "-f", "-q", "--detach", commit)
    return checkout


def run_pipeline(tools: Path, checkout: Path, variables: Mapping[str, str]) -> str:
    """The log of the pipeline in this checkout; a variable of '' is one that its source lacks."""
    there = {**variables, "CI_PROJECT_DIR": str(checkout)}
    given = [f"--variable={name}={value}" for name, value in there.items() if value]
    unset = [f"--unset-variable={name}" for name, value in variables.items() if not value]
    done = run_program(
        [str(tools / "gitlab-ci-local"), "--no-color", "--force-shell-executor", *given, *unset],
        cwd=checkout,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )
    return _COLOURS.sub("", done.stdout + done.stderr)


def outcome(log: str) -> str:
    """Returns the end of the job, with its exit code: `FAIL 1`. The exit code of gitlab-ci-local
    does not say it where some codes may fail."""
    found = re.search(r"^tunegate finished in \S+ \S+ *(.*?) *$", log, re.MULTILINE)
    return (found[1] or "PASS") if found else "no job"
