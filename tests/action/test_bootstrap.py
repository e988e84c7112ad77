"""The bootstrap makes a real environment, offline, from a wheelhouse and a lock with hashes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.programs import run_program
from tests.support.servers.package_index import locked, small_wheel, uv_wheel

ROOT = Path(__file__).resolve().parents[2]
BOOTSTRAP = ROOT / "action" / "bootstrap.py"


@pytest.fixture(scope="module")
def packed_uv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return uv_wheel(tmp_path_factory.mktemp("uv"))


@pytest.fixture
def wheelhouse(tmp_path: Path, packed_uv: Path) -> Path:
    """One wheel and uv, and locks that want exactly them."""
    directory = tmp_path / "wheels"
    directory.mkdir()
    (directory / packed_uv.name).symlink_to(packed_uv)
    (tmp_path / "tiny.lock").write_text(locked(small_wheel(directory)))
    (tmp_path / "installer.lock").write_text(locked(packed_uv))
    return directory


def bootstrap(
    tmp_path: Path, wheelhouse: Path, *, patch: str = "pass", step: str = "run"
) -> subprocess.CompletedProcess[str]:
    """Runs it as the action does, after `patch`; `tunegate_action` itself then lacks its
    dependencies."""
    script = f"import runpy; {patch}; runpy.run_path({str(BOOTSTRAP)!r}, run_name='__main__')"
    return run_program(
        [sys.executable, "-I", "-c", script, step],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "RUNNER_TOOL_CACHE": str(tmp_path / "tools"),
            "TUNEGATE_LOCK": str(tmp_path / "tiny.lock"),
            "TUNEGATE_WHEELHOUSE": str(wheelhouse),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        },
    )


def environments(tmp_path: Path) -> list[Path]:
    return [p for p in (tmp_path / "tools" / "tunegate" / "env").iterdir() if p.is_dir()]


def test_an_environment_is_made_once_and_reused(tmp_path: Path, wheelhouse: Path) -> None:
    first = bootstrap(tmp_path, wheelhouse)
    assert (
        "No module named 'msgspec'" in first.stdout
    )  # it reached our code, in the new environment
    assert first.returncode == 4
    (made,) = environments(tmp_path)
    python = made / "bin" / "python"
    shown = run_program([python, "-c", "import tinydep; print(tinydep.VALUE)"], check=True)
    assert shown.stdout == "1\n"
    before = (made / ".complete").stat().st_mtime_ns
    bootstrap(tmp_path, wheelhouse)
    assert environments(tmp_path) == [made]
    assert (made / ".complete").stat().st_mtime_ns == before


def test_a_wheel_with_another_hash_is_refused_in_one_line(tmp_path: Path, wheelhouse: Path) -> None:
    (tmp_path / "tiny.lock").write_text(f"tinydep==1.0 --hash=sha256:{'0' * 64}\n")
    done = bootstrap(tmp_path, wheelhouse)
    assert done.returncode == 4
    (line,) = [x for x in done.stdout.splitlines() if x.startswith("::error")]
    assert "could not be installed" in line


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ("import platform; platform.system = lambda: 'Darwin'", "macOS is not supported"),
        ("import platform; platform.libc_ver = lambda: ('', '')", "without glibc"),
        ("import platform; platform.machine = lambda: 'riscv64'", "the processor riscv64"),
        ("import sys; sys.version_info = (3, 10, 1)", "Python 3.10 is not supported"),
        ("import sys; sys.maxsize = 2**31 - 1", "a 32-bit Python"),
    ],
)
@pytest.mark.parametrize("step", ["check", "run"])
def test_a_machine_that_is_not_supported_is_told_so_in_one_line(
    tmp_path: Path, wheelhouse: Path, patch: str, said: str, step: str
) -> None:
    done = bootstrap(tmp_path, wheelhouse, patch=patch, step=step)
    assert (done.returncode, done.stderr) == (4, "")
    (line,) = done.stdout.splitlines()
    assert line.startswith("::error title=tunegate::")
    assert said in line
    assert "Linux with glibc 2.28 or newer on x86-64 or arm64" in line
    assert said in (tmp_path / "summary").read_text()


@pytest.mark.parametrize(
    ("patch", "code"),
    [
        ("import sys; sys.modules['fcntl'] = None", 4),
        ("import sys; sys.modules['tunegate'] = None", 4),
        ("import hashlib; hashlib.sha256 = None", 70),
        ("import hashlib; hashlib.sha256 = lambda _: int('x' * 9)", 70),
        ("import os; os.environ['TUNEGATE_LOCK'] = '/nowhere/lock'", 4),
        ("import hashlib, sys; hashlib.sha256 = lambda _: sys.exit('text')", 70),
    ],
)
def test_whatever_breaks_it_is_one_line_and_never_a_regression(
    tmp_path: Path, wheelhouse: Path, patch: str, code: int
) -> None:
    done = bootstrap(tmp_path, wheelhouse, patch=patch)
    assert (done.returncode, done.stderr) == (code, "")
    assert len([x for x in done.stdout.splitlines() if x.startswith("::error")]) == 1


def test_where_nothing_can_be_said_the_exit_code_tells(tmp_path: Path, wheelhouse: Path) -> None:
    closed = "import io, sys; sys.stdout = io.StringIO(); sys.stdout.close()"
    patch = f"{closed}; import platform; platform.system = lambda: 'Darwin'"
    assert bootstrap(tmp_path, wheelhouse, patch=patch).returncode in {4, 70}


def test_what_goes_wrong_shows_no_secret_and_no_markup(tmp_path: Path, wheelhouse: Path) -> None:
    lock = "/nowhere/<b> https://me:word@host s3cret-value"
    given = {"PIP_TOKEN": "s3cret-value", "TUNEGATE_LOCK": lock}
    done = bootstrap(tmp_path, wheelhouse, patch=f"import os; os.environ.update({given!r})")
    said = done.stdout + (tmp_path / "summary").read_text()
    assert done.returncode == 4
    assert "https:/***@host ***" in said
    assert "s3cret" not in said
    assert "word" not in said
    assert "&lt;b&gt;" in said


def test_a_machine_that_can_run_passes_the_check(tmp_path: Path, wheelhouse: Path) -> None:
    assert bootstrap(tmp_path, wheelhouse, step="check").returncode == 0


@pytest.mark.parametrize(
    "body", ["echo SyntaxError: match >&2; exit 1", "exit 2", "kill -9 $$", "exec /nowhere/python"]
)
def test_a_python_too_old_for_the_bootstrap_is_unfit(tmp_path: Path, body: str) -> None:
    """The test runs it as the shell of the action does: an old interpreter ends with 1."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{body}\n")
    python.chmod(0o755)
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    script = tmp_path / "step.sh"
    script.write_text(action["runs"]["steps"][0]["run"])
    for given in (str(python), "/nowhere/python"):
        done = run_program(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
            env={
                "PATH": "/usr/bin:/bin",
                "TUNEGATE_PYTHON": given,
                "GITHUB_ACTION_PATH": str(ROOT),
                "GITHUB_OUTPUT": str(tmp_path / "output"),
            },
            code=4,
        )
        assert done.stdout.startswith("::error title=tunegate::The action needs Python 3.11")
        assert "SyntaxError" not in done.stderr
        assert (tmp_path / "output").read_text().endswith("verdict=error\n")


def test_nothing_of_the_workspace_is_run_or_imported(tmp_path: Path, wheelhouse: Path) -> None:
    """No step runs any, whatever the job's variables say by accident of the working directory."""
    marks = tmp_path / "marks"
    workspace = tmp_path / "workspace"
    for folder in (marks, workspace):
        folder.mkdir()
    for name in ("python3", "python", "git", "sh"):
        (workspace / name).write_text(f"#!/bin/sh\n: > '{marks / name}'\nexit 1\n")
        (workspace / name).chmod(0o755)
    for name in ("msgspec", "tunegate", "tunegate_action", "pip", "venv", "json", "sitecustomize"):
        (workspace / f"{name}.py").write_text(f"open({str(marks / name)!r}, 'w').close()\n")
    for name in ("libz.so.1", "libbz2.so.1.0", "liblzma.so.5", "libcrypto.so.3", "libffi.so.8"):
        (workspace / name).write_text("no library at all")
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    for step in action["runs"]["steps"]:
        (tmp_path / "step.sh").write_text(step["run"])
        done = run_program(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(tmp_path / "step.sh")],
            cwd=workspace,
            env={
                "PATH": f":.:{os.environ['PATH']}",
                "LD_LIBRARY_PATH": ":./;/usr/local/lib",
                "PYTHONPATH": ".:",
                "PYTHONSTARTUP": "json.py",
                "PYTHONHOME": ".",
                "HOME": str(tmp_path),
                "RUNNER_TOOL_CACHE": str(tmp_path / "tools"),
                "TUNEGATE_LOCK": str(tmp_path / "tiny.lock"),
                "TUNEGATE_WHEELHOUSE": str(wheelhouse),
                "GITHUB_ACTION_PATH": str(ROOT),
            },
        )
        assert not list(marks.iterdir())
        expected = "No module named 'msgspec'" if step.get("id") else ""
        assert expected in done.stdout, done.stdout + done.stderr
        assert done.returncode == (4 if step.get("id") else 0)
