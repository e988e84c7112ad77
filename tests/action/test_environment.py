"""The command that makes the developers' environment, with a real uv and a real index."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adversary.action_run import Job
from tests.support.servers.package_index import locked, serving_packages, small_wheel, uv_wheel
from tunegate_environment.pip_settings import uv_variables

ACTION = Path(__file__).resolve().parents[2] / "action"


def made(lock: Path, index: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tunegate_environment", str(lock), str(lock.parent / "made")],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(lock.parent),
            "PYTHONPATH": str(ACTION),
            "PIP_INDEX_URL": index,
        },
        capture_output=True,
        text=True,
        cwd=lock.parent,
        check=False,
    )


def test_an_environment_has_what_its_lock_says(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    packed_uv = uv_wheel(tmp_path)
    (wheels / packed_uv.name).symlink_to(packed_uv)
    (tmp_path / "installer.lock").write_text(locked(packed_uv))
    (tmp_path / "tiny.lock").write_text(locked(small_wheel(wheels)))
    with serving_packages(wheels) as index:
        done = made(tmp_path / "tiny.lock", index.address)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tunegate: tiny.lock is installed in " in done.stdout
    python = tmp_path / "made" / "bin" / "python"
    subprocess.run([python, "-c", "import tinydep"], check=True)


def test_an_environment_that_cannot_be_made_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "installer.lock").write_text(f"uv==0 --hash=sha256:{'0' * 64}\n")
    (tmp_path / "tiny.lock").write_text(f"tinydep==0 --hash=sha256:{'0' * 64}\n")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with serving_packages(wheels) as index:
        done = made(tmp_path / "tiny.lock", index.address)
    assert done.returncode == 4
    assert done.stderr.startswith("tunegate: tiny.lock could not be installed: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "made" / "lib").exists()


# The way from an environment for one runtime to the one that has everything.

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


# The configuration of pip, in uv's variables.

SHOWN = r"""
:env:.disable-pip-version-check='1'
:env:.index-url='https://u:p@of.the/job/simple'
global.cert='/etc/own.pem'
global.extra-index-url='\nhttps://a.example/simple\nhttps://b.example/simple'
global.find-links='/srv/wheels /srv/more'
global.index-url='https://of.the/machine/simple'
global.proxy='http://proxy:3128'
global.timeout='90'
global.trusted-host='a.example b.example:8443'
install.no-index='no'
"""


def test_each_setting_that_says_where_packages_come_from_is_kept() -> None:
    assert uv_variables(SHOWN) == {
        "UV_DEFAULT_INDEX": "https://u:p@of.the/job/simple",
        "UV_INDEX": "https://a.example/simple https://b.example/simple",
        "UV_FIND_LINKS": "/srv/wheels,/srv/more",
        "UV_INSECURE_HOST": "a.example b.example:8443",
        "UV_HTTP_TIMEOUT": "90",
        "SSL_CERT_FILE": "/etc/own.pem",
        "ALL_PROXY": "http://proxy:3128",
    }


def test_a_setting_for_installing_beats_the_general_one() -> None:
    shown = "install.no-index='true'\nglobal.no-index='false'\nglobal.timeout='5'\n"
    assert uv_variables(shown) == {"UV_NO_INDEX": "1", "UV_HTTP_TIMEOUT": "5"}


def test_what_is_not_understood_is_left_out() -> None:
    assert not uv_variables(
        "WARNING: experimental\nfreeze.timeout='10'\nuser.x\nglobal.index-url=''"
    )
