"""Environments that were interrupted, damaged, cancelled or wanted twice, with real processes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.servers.package_index import (
    Index,
    locked,
    serving_packages,
    small_wheel,
    uv_wheel,
)
from tests.support.simulated.small_disk import mounted_disk

BOOTSTRAP = Path(__file__).resolve().parents[2] / "action" / "bootstrap.py"
SLOW = pytest.mark.pipelines
REACHED = "No module named 'msgspec'"
"""Our own code in the new environment says so: the lock of these tests has one small package."""


class Runner:
    """A machine with a directory for tools and a package index that pip's settings name."""

    def __init__(self, directory: Path, index: Index) -> None:
        self.directory, self.index = directory, index
        self.output = directory / "output"

    def start(self, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-I", str(BOOTSTRAP), "run"],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.directory),
                "RUNNER_TOOL_CACHE": str(self.directory / "tools"),
                "TUNEGATE_LOCK": str(self.directory / "tiny.lock"),
                "PIP_INDEX_URL": self.index.address,
                "GITHUB_OUTPUT": str(self.output),
                **variables,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.directory,
        )

    def run(self, **variables: str) -> str:
        job = self.start(**variables)
        said, _ = job.communicate()
        return said

    @property
    def places(self) -> Path:
        return self.directory / "tools" / "tunegate" / "env"

    def environment(self) -> Path:
        """The only directory that is left."""
        (found,) = [path for path in self.places.iterdir() if path.is_dir()]
        return found

    def package(self) -> Path:
        (found,) = self.environment().glob("lib/*/site-packages/tinydep.py")
        return found


@pytest.fixture(scope="module")
def packed_uv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return uv_wheel(tmp_path_factory.mktemp("uv"))


@pytest.fixture
def runner(tmp_path: Path, packed_uv: Path) -> Iterator[Runner]:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / packed_uv.name).symlink_to(packed_uv)
    (tmp_path / "tiny.lock").write_text(locked(small_wheel(wheels)))
    (tmp_path / "installer.lock").write_text(locked(packed_uv))
    with serving_packages(wheels) as index:
        yield Runner(tmp_path, index)


def edit_with_the_same_size(runner: Runner) -> None:
    runner.package().write_text("VALUE = 2\n")


def lose_a_file(runner: Runner) -> None:
    runner.package().unlink()


def add_code_that_python_runs_at_its_start(runner: Runner) -> None:
    (runner.package().parent / "own.pth").write_text("import tinydep\n")


def lose_the_python(runner: Runner) -> None:
    (runner.environment() / "bin" / "python").unlink()


def cut_off_the_seal(runner: Runner) -> None:
    (runner.environment() / ".complete").write_text("{")


def test_uv_and_pip_ask_the_index_that_pip_is_told(runner: Runner) -> None:
    said = runner.run()
    assert " by uv (" in said
    assert REACHED in said
    assert runner.index.clients_of("uv") == {"pip"}
    assert runner.index.clients_of("tinydep") == {"uv"}
    assert runner.output.read_text().startswith(f"environment-key={runner.environment().name}\n")


@SLOW
def test_pip_installs_where_uv_cannot_be_had(runner: Runner) -> None:
    (runner.directory / "installer.lock").write_text(f"uv==0 --hash=sha256:{'0' * 64}\n")
    said = runner.run()
    assert "uv failed (" in said
    assert " by pip (" in said
    assert runner.index.clients_of("tinydep") == {"pip"}
    assert REACHED in said


@pytest.mark.parametrize(
    "damage",
    [
        edit_with_the_same_size,
        pytest.param(lose_a_file, marks=SLOW),
        pytest.param(add_code_that_python_runs_at_its_start, marks=SLOW),
        pytest.param(lose_the_python, marks=SLOW),
        pytest.param(cut_off_the_seal, marks=SLOW),
    ],
)
def test_what_was_damaged_is_seen_and_made_again(
    runner: Runner, damage: Callable[[Runner], None]
) -> None:
    runner.run()
    damage(runner)
    said = runner.run()
    assert " again: " in said
    assert runner.package().read_text() == "VALUE = 1\n"
    assert not list(runner.package().parent.glob("own.pth"))
    assert "checked (" in runner.run()


@SLOW
def test_an_environment_that_was_restored_is_checked_by_its_content(runner: Runner) -> None:
    """A cache of a CI brings other times, and maybe another content."""
    runner.run()
    for path in runner.environment().rglob("*.py"):
        os.utime(path, (1, 1))
    assert "checked (" in runner.run()
    edit_with_the_same_size(runner)
    os.utime(runner.package(), (1, 1))
    assert "tinydep.py is not what was installed" in runner.run()


@pytest.mark.parametrize(
    ("number", "slow"),
    [
        (signal.SIGINT, "tinydep"),
        pytest.param(signal.SIGTERM, "tinydep", marks=SLOW),
        pytest.param(signal.SIGINT, "uv", marks=SLOW),
        pytest.param(signal.SIGTERM, "uv", marks=SLOW),
    ],
)
def test_a_cancelled_installation_leaves_nothing(
    runner: Runner, number: signal.Signals, slow: str
) -> None:
    runner.index.slow = {slow: 60.0}
    job = runner.start()
    wait_until(lambda: bool(runner.index.clients_of(slow)))
    children = psutil.Process(job.pid).children(recursive=True)
    assert children
    began = time.monotonic()
    job.send_signal(number)
    said, _ = job.communicate()
    assert time.monotonic() - began < 30  # the download takes a minute
    assert job.returncode == 130
    assert "cancelled" in said
    assert not [child for child in children if child.is_running()]
    assert not [path for path in runner.places.iterdir() if path.is_dir()]
    runner.index.slow = {}
    assert REACHED in runner.run()


@SLOW
def test_whatever_moment_it_is_killed_at_the_next_job_has_it(runner: Runner) -> None:
    rng = random.Random(25)
    runner.index.slow = {"uv": 0.1, "tinydep": 0.1}
    for _ in range(3):
        job = runner.start()
        time.sleep(rng.uniform(0.3, 1.8))
        children = psutil.Process(job.pid).children(recursive=True)
        job.kill()
        job.communicate()
        _, left = psutil.wait_procs(children, timeout=60)
        assert not left
    assert REACHED in runner.run()
    assert runner.package().read_text() == "VALUE = 1\n"


@SLOW
def test_two_jobs_at_once_make_it_once(runner: Runner) -> None:
    runner.index.slow = {"tinydep": 0.5}
    jobs = [runner.start(), runner.start()]
    said = [job.communicate()[0] for job in jobs]
    assert sum("making the environment" in each for each in said) == 1
    assert all(REACHED in each for each in said)


@SLOW
def test_it_is_never_silent_for_long(runner: Runner) -> None:
    runner.index.slow = {"tinydep": 9.0}
    first, second = runner.start(), runner.start()
    said = first.communicate()[0] + second.communicate()[0]
    assert "tunegate: installing packages (8 s)" in said
    assert "waiting for another job that makes the environment" in said


@SLOW
def test_a_directory_of_another_user_is_passed_over(runner: Runner) -> None:
    """The runner's tools may be root's in a container, or the place may be a file."""
    (runner.directory / "tools").write_text("no directory")
    assert REACHED in runner.run(XDG_CACHE_HOME=str(runner.directory / "mine"))
    assert list((runner.directory / "mine" / "tunegate" / "env").glob("*/.complete"))


@SLOW
def test_a_full_disk_is_said_and_left_as_it_was(runner: Runner) -> None:
    with mounted_disk(runner.directory / "tools", "20m") as place:
        said = runner.run()
        assert "No space left on device" in said
        assert "pip installs" not in said
        assert not [path for path in runner.places.iterdir() if path.is_dir()]
        assert not list(place.rglob("*.whl"))


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)
