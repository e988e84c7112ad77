"""Runs pytest with these options, and the tests that failed once more, alone:

    python -m tests.support.try_again -n 2 -m gpu_job

A test that passes then is named as flaky, and the run passes. More than `MOST` failures, or an end
that no test explains, are not tried again.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

MOST = 10
_SOME_FAILED = 1
"""Pytest's exit code for failed tests; 2 and more mean that it did not run them all."""


def main(options: Sequence[str]) -> int:
    """Returns pytest's exit code, 0 if all that failed passed at the second try."""
    with tempfile.TemporaryDirectory(prefix="pytest-cache-") as cache:
        keeping = ["-o", f"cache_dir={cache}"]
        code = _pytest([*options, *keeping])
        failed = _failed(Path(cache))
        is_explained = all("::" in each for each in failed)  # else a file cannot be imported
        if code != _SOME_FAILED or not is_explained or not 0 < len(failed) <= MOST:
            return code
        _say(f"{len(failed)} failed, and are tried once more, alone")
        # Of these tests, a part of all would be another one.
        chosen = [each for each in options if not each.startswith("--shard")]
        code = _pytest([*chosen, *keeping, "-n0", *failed])
        again = _failed(Path(cache))
    for test in failed:
        _say(f"{'FAILED twice' if test in again else 'FLAKY'}: {test}")
    return code


def _pytest(arguments: Sequence[str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


def _failed(cache: Path) -> list[str]:
    """Returns the ids of the tests that failed when they last ran."""
    file = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(file.read_text())) if file.exists() else []


def _say(text: str) -> None:
    sys.stdout.write(f"try_again: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
