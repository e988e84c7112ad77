"""The command that makes the developers' environment, with a real uv and a real index."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.adversary.action_run import Job
from tests.support.programs import run_program
from tests.support.servers import package_index
from tests.support.simulated.small_disk import mounted_disk
from tunegate_environment.pip_settings import uv_variables

ACTION = Path(__file__).resolve().parents[2] / "action"


def made(lock: Path, index: str) -> subprocess.CompletedProcess[str]:
    return run_program(
        [sys.executable, "-m", "tunegate_environment", str(lock), str(lock.parent / "made")],
        cwd=lock.parent,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(lock.parent),
            "PYTHONPATH": str(ACTION),
            "PIP_INDEX_URL": index,
        },
    )


def test_an_environment_has_what_its_lock_says(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    packed_uv = package_index.uv_wheel(tmp_path)
    (wheels / packed_uv.name).symlink_to(packed_uv)
    (tmp_path / "installer.lock").write_text(package_index.locked(packed_uv))
    (tmp_path / "tiny.lock").write_text(package_index.locked(package_index.small_wheel(wheels)))
    with package_index.serving_packages(wheels) as index:
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
    with package_index.serving_packages(wheels) as index:
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


# Environments that were interrupted, damaged, cancelled or wanted twice, with real processes.

BOOTSTRAP = Path(__file__).resolve().parents[2] / "action" / "bootstrap.py"
SLOW = pytest.mark.pipelines
REACHED = "No module named 'msgspec'"
"""Our own code in the new environment says so: the lock of these tests has one small package."""


class Runner:
    """A machine with a directory for tools and a package index that pip's settings name."""

    def __init__(self, directory: Path, index: package_index.Index) -> None:
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
        said, _ = self.start(**variables).communicate()
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
    return package_index.uv_wheel(tmp_path_factory.mktemp("uv"))


@pytest.fixture
def runner(tmp_path: Path, packed_uv: Path) -> Iterator[Runner]:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / packed_uv.name).symlink_to(packed_uv)
    (tmp_path / "tiny.lock").write_text(package_index.locked(package_index.small_wheel(wheels)))
    (tmp_path / "installer.lock").write_text(package_index.locked(packed_uv))
    with package_index.serving_packages(wheels) as index:
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
def test_what_is_damaged_is_made_again(runner: Runner, damage: Callable[[Runner], None]) -> None:
    runner.run()
    damage(runner)
    assert " again: " in runner.run()
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
def test_a_cancelled_one_leaves_nothing(runner: Runner, number: signal.Signals, slow: str) -> None:
    runner.index.slow = {slow: 280.0}
    job = runner.start()
    wait_until(lambda: bool(runner.index.clients_of(slow)))
    children = psutil.Process(job.pid).children(recursive=True)
    assert children
    began = time.monotonic()
    job.send_signal(number)
    said, _ = job.communicate()
    assert time.monotonic() - began < 120  # the download takes longer than that
    assert job.returncode == 130
    assert "cancelled" in said
    _, left = psutil.wait_procs(children, timeout=60)
    assert not left
    assert not [path for path in runner.places.iterdir() if path.is_dir()]
    runner.index.slow = {}
    assert REACHED in runner.run()


DROPPED = """\
import contextlib, os, signal
from tunegate_environment.children import cancel_on_signals, run_child
cancel_on_signals()
with contextlib.suppress(KeyboardInterrupt):
    os.kill(os.getpid(), signal.SIGTERM)
run_child(["sleep", "600"], os.environ)
"""


def test_a_cancel_that_a_library_drops_ends_the_installation() -> None:
    assert "KeyboardInterrupt" in run_program([sys.executable, "-c", DROPPED]).stderr


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
    assert re.search(r"tunegate: installing packages \(\d+ s\)", said)
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
