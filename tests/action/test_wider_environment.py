"""The way from an environment for one runtime to the one that has everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adversary.action_run import Job

RECORDS = """\
#!/bin/sh
printf '%s\\n' "$@" "$TUNEGATE_ENVIRONMENT" > "{0}/started"
"""
NEEDS_MORE = b"models: [{path: models/*.onnx}]\ntargets: [{name: cpu, runtime: unknown}]\n"


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def run(job: Job, environment: str) -> tuple[int, list[str]]:
    """The exit code, and what a Python in the place of the runner's was started with."""
    python = job.file("python")
    python.write_text(RECORDS.format(job.directory))
    python.chmod(0o755)
    started = job.file("started")
    started.unlink(missing_ok=True)
    named = {"TUNEGATE_ENVIRONMENT": environment, "TUNEGATE_BASE_PYTHON": str(python)}
    ended = job.run("push", job.push(job.start, job.base), **named)
    return ended.exit_code, started.read_text().splitlines() if started.exists() else []


def test_a_configuration_that_cannot_be_used_here_is_tried_with_everything(job: Job) -> None:
    job.base = job.origin.commit({"tunegate.yaml": NEEDS_MORE})
    job.checkout(job.base)
    code, started = run(job, "run-onnxruntime")
    assert code == 0  # of the program that took the place
    assert started[:3] == ["-I", "-X", "utf8"]
    assert Path(started[3]).name == "bootstrap.py"
    assert started[4:] == ["run", "everything"]
    assert "verdict" not in job.file("output").read_text()
    code, started = run(job, "run")
    assert (code, started) == (2, [])


def test_nothing_is_installed_where_the_narrow_one_is_enough(job: Job) -> None:
    job.checkout(job.base)
    assert run(job, "run-onnxruntime") == (0, [])
