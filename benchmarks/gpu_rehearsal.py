"""Rehearses a lease on this machine, which needs g++ and no GPU: `benchmarks/gpu.sh -- --rehearse`.

The job runs as it would there, with a stand-in for the device: in a copy of the checkout without
its history, by a Python that has what such a machine has, with what the parts bring besides. It has
no home, no network where that can be taken away, and few programs. Once it is killed in the middle,
and must have left its figures; once it runs to its end. No more files may come back than a lease
returns. Ends with 1, and says why, where something is amiss.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from tests.cuda_stand_in import environment
from tests.support.small_onnx import chain_model, save

MOST_FILES = 4
"""A lease returns eight; a caller's own log and others come on top."""
HAS = (
    *("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "onnx", "protobuf", "ml_dtypes"),
    *("onnxruntime", "flatbuffers", "sympy", "mpmath", "jinja2", "markupsafe", "psutil", "pyyaml"),
    *("packaging", "typing_extensions"),
)
"""Distributions of a machine that is lent."""
BRINGS = (
    *("apache-tvm", "apache-tvm-ffi", "xgboost-cpu", "msgspec", "zstandard", "cryptography"),
    *("cffi", "pycparser", "boto3", "botocore", "s3transfer", "jmespath", "python-dateutil", "six"),
    *("urllib3", "rich", "markdown-it-py", "mdurl", "pygments", "cupti-python", "pyelftools"),
    *("shtab", "pytest", "pluggy", "iniconfig", "hypothesis", "sortedcontainers"),
)
"""Distributions of the parts. From pytest on they are for the tests of a device."""
_LEFT_OUT = {"3rdparty", "tests", "__pycache__"}
_PROGRAMS = (
    *("bash", "sh", "env", "git", "timeout", "cat", "head", "tail", "mktemp", "dirname", "mkdir"),
    *("rm", "readlink", "g++", "as", "ld", "sleep"),
)
_BENCHMARKS = ("tiles", "whole")
"""Steps that leave tables whose last column are numbers."""
_STEPS = ("doctor", "warm", "weights", "slower", *_BENCHMARKS)
_CONFIG = """\
models:
  - path: models/*.onnx
targets:
  - {name: gpu, kind: cuda, arch: sm_80, device-wait-seconds: 60}
budget: {trials: 2}
gate:
  pairs: 4
  seconds: 60
  extend: false
  rare-launches: 0
  tail-margin-percent: 1000
cache: {url: cache}
"""
_OPTIONS = (
    *("--minutes", "0.5", "--seconds", "2000", "--patience", "5", "--more", "8", "30", "--small"),
    *("--steps", *_STEPS),
)


def main() -> int:
    layout = argparse.RawDescriptionHelpFormatter
    argparse.ArgumentParser(description=__doc__, formatter_class=layout).parse_args()
    place = Path(tempfile.mkdtemp(prefix="gpu-rehearsal-"))
    checkout, python = place / "checkout", place / "python"
    _say("copies the checkout, and packs the parts")
    _copy_checkout(checkout)
    make_python(python, HAS)
    parts = _packed(place / "parts")
    programs = _linked_programs(place / "bin")
    save(chain_model(layers=13, width=32, rows=16), place / "m.onnx")
    (place / "tunegate.yaml").write_text(_CONFIG)
    line = [
        *(*_without_network(), "bash", "benchmarks/gpu.sh", str(parts), "--", *_OPTIONS),
        *("--models", str(place / "m.onnx"), "--config", str(place / "tunegate.yaml")),
    ]
    variables = _variables(place, (python / "bin", programs))
    amiss = [
        *_cut_short(line, checkout, {**variables, "OUT": str(place / "cut")}, place / "cut"),
        *_to_the_end(line, checkout, {**variables, "OUT": str(place / "whole")}, place / "whole"),
    ]
    for each in amiss:
        _say(each)
    if not amiss:
        shutil.rmtree(place, ignore_errors=True)
        _say("all is as it should be")
    else:
        _say(f"what was there is in {place}")
    return int(bool(amiss))


def _cut_short(
    line: Sequence[str], checkout: Path, variables: Mapping[str, str], out: Path
) -> Iterator[str]:
    """Yields the faults of a job that is killed while it tunes."""
    _say("begins, and is killed in the middle")
    with (out.parent / "cut.log").open("w") as log:
        job = subprocess.Popen(
            line, cwd=checkout, env=variables, stdout=log, stderr=log, start_new_session=True
        )
        while job.poll() is None and "warm" not in [each["step"] for each in _steps(out)]:
            time.sleep(1)
        time.sleep(5)
        with suppress(ProcessLookupError):  # it has ended too soon, which its figures tell
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    found = {each["step"]: each for each in _steps(out)}
    if not found.get("doctor", {}).get("is_as_expected"):
        yield f"a job that was killed left no figures of doctor: {found}"
    if not found.get("warm", {}).get("is_running"):
        yield f"a job that was killed does not say where: {found}"
    yield from _problems_of_files(out)


def _to_the_end(
    line: Sequence[str], checkout: Path, variables: Mapping[str, str], out: Path
) -> Iterator[str]:
    """Yields the faults of a whole job."""
    _say("runs to its end")
    with (out.parent / "whole.log").open("w") as log:
        done = subprocess.run(
            line, cwd=checkout, env=variables, stdout=log, stderr=log, check=False
        )
    if done.returncode:
        yield f"gpu.sh ended with {done.returncode}: {out.parent / 'whole.log'}"
    ended = {each["step"]: each for each in _steps(out)}
    for step in _STEPS:
        if not ended.get(step, {}).get("is_as_expected"):
            yield f"{step} did not end as it should: {ended.get(step)}"
    for step in _BENCHMARKS:
        if not _has_figures(ended.get(step, {}).get("tables", [])):
            yield f"{step} left no figures: {ended.get(step)}"
    yield from _problems_of_files(out)


def _has_figures(tables: Sequence[Mapping[str, Any]]) -> bool:
    """Returns True where there are tables, and each of their rows ends with a number, not with a
    reason."""
    last = [row[-1] for table in tables for row in table["rows"]]
    return bool(last) and all(re.fullmatch(r"[0-9.]+", each) for each in last)


def _problems_of_files(out: Path) -> Iterator[str]:
    files = [each for each in out.rglob("*") if each.is_file()]
    if len(files) > MOST_FILES:
        yield f"{len(files)} files are left, and {MOST_FILES} at most come back: {files}"


def _steps(out: Path) -> list[dict[str, Any]]:
    try:
        steps: list[dict[str, Any]] = json.loads((out / "gpu.json").read_text())["steps"]
    except OSError:
        return []
    return steps


def _copy_checkout(into: Path) -> None:
    """Copies what travels: tracked files, and others that git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True, check=True
    )
    for name in listed.stdout.decode().split("\0"):
        if name and Path(name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, into / name)


def make_python(at: Path, has: Sequence[str]) -> None:
    """Makes a Python that has nothing but these distributions."""
    venv.create(at, symlinks=True)
    (site,) = at.glob("lib/python*/site-packages")
    for distribution in _installed(has):
        for top in {each.parts[0] for each in distribution.files or () if each.parts[0] != ".."}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution.locate_file(top))))


def _packed(into: Path) -> Path:
    """Packs the other distributions as one part."""
    into.mkdir()
    with tarfile.open(into / "part-00", "w:xz", preset=0) as packed:
        for distribution in _installed(BRINGS):
            for each in distribution.files or ():
                at = Path(str(distribution.locate_file(each)))
                if each.parts[0] != ".." and not _LEFT_OUT & {*each.parts} and at.is_file():
                    packed.add(at, str(each))
    return into


def _installed(names: Sequence[str]) -> Iterator[metadata.Distribution]:
    for name in names:
        try:
            yield metadata.distribution(name)
        except metadata.PackageNotFoundError:
            _say(f"{name} is not installed here")


def _linked_programs(at: Path) -> Path:
    at.mkdir()
    for name in _PROGRAMS:
        found = shutil.which(name)
        if found is not None:
            (at / name).symlink_to(found)
    return at


def _variables(place: Path, programs: Sequence[Path]) -> dict[str, str]:
    """Those of the stand-in's device, and no others: no home, no locale."""
    given = environment.variables(
        place / "device", inherited={}, multiprocessors=1, capability=80, pace=2000
    )
    searched = given.pop("PYTHONPATH").split(os.pathsep)
    own = [each for each in searched if each.startswith(str(Path("tests").resolve()))]
    tools = Path(given["CUDA_PATH"]) / "bin"
    return {
        **given,
        "PYTHONPATH": os.pathsep.join(own),
        "PATH": os.pathsep.join(map(str, (*programs, tools))),
        "UNPACKING_SECONDS": "600",
    }


def _without_network() -> tuple[str, ...]:
    unshare = shutil.which("unshare")
    taken = (unshare or "unshare", "--map-root-user", "--net")
    if unshare is None or subprocess.run([*taken, "true"], check=False).returncode:
        _say("the network stays: it cannot be taken away here")
        return ()
    return taken


def _say(what: str) -> None:
    print(f"rehearsal: {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
