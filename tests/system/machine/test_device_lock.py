"""One user of a device at a time, and no lock left behind."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.present import present
from tunegate.errors import EnvironmentUnfitError
from tunegate.system.machine.device_lock import Claim, claim_on, held_device, holder_of

HOLD = """
import sys, time
from tunegate.system.machine.device_lock import Claim
from tunegate.system.machine.device_lock import held_device
claim = Claim(uuid="GPU-a", directory=sys.argv[1], wait_seconds=60, run="https://ci/1")
with held_device(claim):
    print("held", flush=True)
    time.sleep(600)
"""
TAKE_TURNS = """
import sys, time
from pathlib import Path
from tunegate.system.machine.device_lock import Claim
from tunegate.system.machine.device_lock import held_device
claim = Claim(uuid="GPU-a", directory=sys.argv[1], wait_seconds=200)
log = Path(sys.argv[1]) / "log"
for _ in range(20):
    with held_device(claim):
        with log.open("a") as file:
            file.write("in\\n")
        time.sleep(0.002)
        with log.open("a") as file:
            file.write("out\\n")
"""


def claim(directory: Path, wait_seconds: float = 0.0) -> Claim:
    return Claim(uuid="GPU-a", directory=str(directory), wait_seconds=wait_seconds)


def started(script: str, directory: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, str(directory)], stdout=subprocess.PIPE, text=True
    )


def test_two_runs_never_have_the_device_at_once(tmp_path: Path) -> None:
    runs = [started(TAKE_TURNS, tmp_path) for _ in range(3)]
    for run in runs:
        run.communicate(timeout=240)
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert (tmp_path / "log").read_text() == "in\nout\n" * 60


def test_who_waits_too_long_is_told_who_has_it(tmp_path: Path) -> None:
    with started(HOLD, tmp_path) as run:
        assert present(run.stdout).readline() == "held\n"
        with (
            pytest.raises(
                EnvironmentUnfitError, match=rf"process {run.pid} of .*ci/1 has.*once it is merged"
            ),
            held_device(claim(tmp_path, 0.2)),
        ):
            pass
        run.kill()


def test_a_killed_run_leaves_no_lock(tmp_path: Path) -> None:
    with started(HOLD, tmp_path) as run:
        assert present(run.stdout).readline() == "held\n"
        run.send_signal(signal.SIGKILL)
        run.wait()
        with held_device(claim(tmp_path, 1.0)):
            holder = holder_of(claim(tmp_path))
    assert present(holder).pid == os.getpid()


def test_what_a_stranger_wrote_into_the_file_is_not_believed(tmp_path: Path) -> None:
    claim(tmp_path).path.write_bytes(b"\xff{not json" * 1000)
    os.truncate(claim(tmp_path).path, 2**43)  # more than any memory
    assert holder_of(claim(tmp_path)) is None
    with held_device(claim(tmp_path)):
        pass


def test_a_link_in_the_place_of_the_lock_is_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    claim(tmp_path).path.symlink_to(victim)
    with (
        pytest.raises(EnvironmentUnfitError, match="TUNEGATE_LOCK_DIR"),
        held_device(claim(tmp_path)),
    ):
        pass
    assert victim.read_text() == "precious"


def test_a_pipe_in_the_place_of_the_lock_is_refused(tmp_path: Path) -> None:
    os.mkfifo(claim(tmp_path).path)
    with pytest.raises(EnvironmentUnfitError, match="is not a file"), held_device(claim(tmp_path)):
        pass


def test_files_that_cannot_be_locked_are_no_fault_of_a_candidate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on NFS without locks. An error of another kind is recorded as the candidate's."""

    def refuse(*_: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(EnvironmentUnfitError, match="No locks"), held_device(claim(tmp_path)):
        pass


def test_a_directory_that_is_not_there_is_an_explained_error(tmp_path: Path) -> None:
    with (
        pytest.raises(EnvironmentUnfitError, match="Set TUNEGATE_LOCK_DIR"),
        held_device(claim(tmp_path / "missing")),
    ):
        pass


def test_a_claim_means_the_same_place_in_every_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    claim = claim_on("GPU-a", wait_seconds=0.0, variables={"TUNEGATE_LOCK_DIR": "locks"})
    assert claim.directory == str(tmp_path / "locks")


def test_a_claim_says_whose_run_it_is(tmp_path: Path) -> None:
    variables = {
        "TUNEGATE_LOCK_DIR": str(tmp_path),
        "GITHUB_ACTIONS": "true",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "a/b",
        "GITHUB_RUN_ID": "17",
    }
    made = claim_on("GPU-a/b", wait_seconds=3, variables=variables)
    assert made.run == "https://github.com/a/b/actions/runs/17"
    assert made.path == tmp_path / "tunegate-GPU-a_b.lock"
    assert claim_on("x", wait_seconds=3, variables={"BUILD_URL": "u"}).run == "u"
    assert claim_on("x", wait_seconds=3, variables={}).run == ""
