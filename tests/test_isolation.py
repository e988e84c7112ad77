"""The places that a process looks at after `isolate`, asked of real processes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs import run_program
from tunegate.isolation import absolute_only

PREFACE = "from tunegate.isolation import isolate, keep_out\n"
SHOW = "isolate()\nimport json, sys\nprint(json.dumps(sys.path))\n"
LOADS = "isolate()\nimport ctypes\nctypes.CDLL('libplanted.so')\n"


def python(program: str, at: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return run_program(
        [sys.executable, "-c", PREFACE + program], cwd=at, env={**os.environ, **variables}
    )


def searched(program: str, at: Path, **variables: str) -> list[str]:
    done = python(program, at, **variables)
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    (root / ".git").mkdir(parents=True)
    (root / "src" / "deep").mkdir(parents=True)
    return root


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("library") / "libplanted.so"
    source = file.with_suffix(".c")
    source.write_text("int planted = 1;\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", file, source], check=True)
    return file


@pytest.mark.parametrize("entries", [".", "src:", "{root}/src/..", "{root}/src"])
def test_nothing_is_imported_from_the_checkout(checkout: Path, entries: str) -> None:
    found = searched(SHOW, checkout, PYTHONPATH=entries.format(root=checkout))
    assert not [entry for entry in found if not entry or str(checkout) in entry]


def test_a_directory_above_the_working_directory_is_the_checkout_too(checkout: Path) -> None:
    found = searched(SHOW, checkout / "src" / "deep", PYTHONPATH=str(checkout / "src"))
    assert not [entry for entry in found if str(checkout) in entry]


def test_a_link_is_where_it_lies_and_where_it_leads(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "libraries").mkdir()
    (checkout / "out").symlink_to(tmp_path / "libraries")
    (tmp_path / "in").symlink_to(checkout / "src")
    entries = f"{checkout / 'out'}:{tmp_path / 'in'}"
    found = searched(SHOW, checkout, PYTHONPATH=entries)
    assert not [entry for entry in found if str(tmp_path) in entry]


def test_every_name_of_a_file_can_be_written(tmp_path: Path) -> None:
    show = "isolate()\nimport sys\nprint(sys.getfilesystemencoding())\n"
    assert python(show, tmp_path, LC_ALL="C", PYTHONUTF8="0").stdout == "utf-8\n"


def test_a_child_that_fails_is_no_success_where_sigchld_came_ignored(tmp_path: Path) -> None:
    program = (
        "import signal, subprocess\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "from tunegate.cli.entry import run_guarded\n"
        "print(run_guarded(lambda: subprocess.run(['false']).returncode, print))\n"
    )
    assert python(program, tmp_path).stdout == "1\n"


def test_what_is_elsewhere_stays(checkout: Path, tmp_path: Path) -> None:
    found = searched(SHOW, checkout, PYTHONPATH=str(tmp_path / "libraries"))
    assert found[0] == str(tmp_path / "libraries")


def test_without_a_checkout_only_the_working_directory_is_left_out(tmp_path: Path) -> None:
    found = searched(SHOW, tmp_path, PYTHONPATH=f".:{tmp_path / 'libraries'}")
    assert [entry for entry in found if str(tmp_path) in entry] == [str(tmp_path / "libraries")]


def test_an_environment_in_a_checkout_is_an_environment(checkout: Path) -> None:
    """The environment is one like `.venv`: but its `bin`, where the command's
    script lies, has no modules of ours."""
    environment = checkout / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    site = next(environment.glob("lib/python*/site-packages"))
    program = PREFACE + "sys.path.append(sys.prefix + '/bin')\n" + SHOW
    done = run_program(
        [environment / "bin" / "python", "-c", "import sys\n" + program],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "plugin")},
        check=True,
    )
    found = json.loads(done.stdout)
    assert str(site) in found
    assert str(environment / "bin") not in found


@pytest.mark.parametrize(
    "said", [["{root}"], ["--repository={root}"], ["-x", "{root}/src/deep/m.onnx"]]
)
def test_the_commands_subject_is_kept_out(checkout: Path, tmp_path: Path, said: list[str]) -> None:
    (checkout / "src" / "deep" / "m.onnx").touch()
    words = [word.format(root=checkout) for word in said]
    program = f"import sys\nsys.argv[1:] = {words!r}\n{SHOW}"
    found = searched(program, tmp_path, PYTHONPATH=f"{checkout / 'src'}:{tmp_path / 'libraries'}")
    assert [e for e in found if str(tmp_path) in e] == [str(tmp_path / "libraries")]


def test_another_checkout_can_be_kept_out_as_well(checkout: Path, tmp_path: Path) -> None:
    program = (
        f"import json, sys\nkeep_out({str(checkout / 'src')!r})\nprint(json.dumps(sys.path))\n"
    )
    found = searched(program, tmp_path, PYTHONPATH=str(checkout / "src" / "deep"))
    assert not [entry for entry in found if str(checkout) in entry]


@pytest.mark.parametrize("entries", [":{usual}", "{usual};", "lib:{usual}"])
def test_no_library_is_loaded_from_the_working_directory(
    checkout: Path, library: Path, entries: str
) -> None:
    (checkout / "lib").mkdir()
    for place in (checkout, checkout / "lib"):
        shutil.copy(library, place)
    done = python(LOADS, checkout, LD_LIBRARY_PATH=entries.format(usual="/usr/local/lib"))
    assert "libplanted.so: cannot open shared object file" in done.stderr


def test_a_library_that_the_environment_names_is_loaded(
    checkout: Path, library: Path, tmp_path: Path
) -> None:
    shutil.copy(library, tmp_path)
    assert python(LOADS, checkout, LD_LIBRARY_PATH=f":{tmp_path}").returncode == 0


def test_places_that_depend_on_the_working_directory_are_left_out() -> None:
    variables = {
        "PATH": ":/usr/bin:.:bin:/opt/a;b",
        "PYTHONPATH": ".",
        "LD_LIBRARY_PATH": "/a;./b:",
        "LD_PRELOAD": "./evil.so /good.so libplain.so",
        "LD_AUDIT": "evil/audit.so",
        "HOME": ".",
    }
    assert absolute_only(variables) == {
        "PATH": "/usr/bin:/opt/a;b",
        "LD_LIBRARY_PATH": "/a",
        "LD_PRELOAD": "/good.so libplain.so",
        "HOME": ".",
    }
    assert absolute_only({"PATH": "/bin"}) == {"PATH": "/bin"}
