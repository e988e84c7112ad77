import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tunegate.system.output.temporary_folder import TemporaryFolder, remove_abandoned

HOLDS = (
    "import time; from tunegate.system.output.temporary_folder import TemporaryFolder; "
    "folder = TemporaryFolder(); print(folder.name, flush=True); time.sleep(60)"
)


def test_what_a_killed_process_left_goes_with_the_next_run_and_what_is_in_use_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "others").mkdir()
    left = left_by_a_killed_process(tmp_path)
    (left / "model.onnx").write_bytes(b"")
    with TemporaryFolder() as used:
        (tmp_path / "tunegate-tmp-link").symlink_to(tmp_path / "others")
        for folder in (used, left, tmp_path / "others"):
            os.utime(folder, (0, 0))
        remove_abandoned()
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"others", "tunegate-tmp-link", Path(used).name}
    assert not Path(used).exists()


def left_by_a_killed_process(place: Path) -> Path:
    command = [sys.executable, "-c", HOLDS]
    environment = {**os.environ, "TMPDIR": str(place)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        process.send_signal(signal.SIGKILL)
    assert folder.is_dir()
    return folder
