"""The wheel, installed in an environment that lies in a checkout: its
children find it there, too."""

import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from tests.house.sources import ROOT, SOURCE_ROOTS
from tests.support.programs import run_program
from tests.support.small_onnx import conv_model, save
from tests.support.workspace import NOT_COMPILED, Workspace


@pytest.mark.e2e
def test_a_wheel_works_beside_the_models_that_it_checks(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    workspace.write(".gitignore", ".venv\n")
    save(conv_model(), workspace.root / "models" / "new.onnx")
    workspace.commit()
    environment = workspace.root / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (site,) = environment.glob("lib/python*/site-packages")
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    # What it depends on is that of these tests; a path alone brings no editable installation.
    (site / "others.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n")
    done = run_program(
        [environment / "bin" / "python", "-m", "tunegate", "plan", "--base", "HEAD~1"],
        cwd=workspace.root,
        env={**os.environ, "HOME": str(tmp_path)},
        code=0,
    )
    assert "3 tasks" in done.stdout  # as its compiler child says


# The main job without any extra: its imports are whole, and what is missing is one line.

START = f"""
import sys, sysconfig
sys.path[:0] = {[str(ROOT / root) for root in SOURCE_ROOTS]!r}
sys.path.append({sysconfig.get_paths()["purelib"]!r})
nowhere = dict(sysconfig.get_paths(), purelib="/nowhere", platlib="/nowhere")
sysconfig.get_paths = lambda *_, **__: nowhere
from tunegate.cli.help_pages import is_answered
from tunegate.cli.main import main
code = 0 if is_answered(sys.argv[1:]) else main(sys.argv[1:])
core = {{"tunegate", "tunegate_action", "tunegate_cache"}}
loaded = {{name.partition(".")[0] for name in sys.modules if name.startswith("tunegate")}}
assert loaded <= core, loaded
sys.exit(code)
"""
"""No .pth file is read with `-S`, so that no extra that is installed here can be imported."""


def core(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return run_program(
        [sys.executable, "-S", "-P", "-c", START, *arguments],
        cwd=cwd,
        env={**os.environ, **variables},
    )


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    made = Workspace(tmp_path_factory.mktemp("core") / "w", NOT_COMPILED)
    made.commit()
    return made


@pytest.mark.e2e
def test_a_run_with_nothing_to_do_passes(workspace: Workspace) -> None:
    done = core("run", "--base", "HEAD~1", cwd=workspace.root)
    assert done.returncode == 0, done.stderr


@pytest.mark.e2e
def test_help_shows_the_commands_of_the_core(workspace: Workspace) -> None:
    done = core("--help", cwd=workspace.root)
    assert done.returncode == 0, done.stderr
    assert "  run " in done.stdout


RUNTIMES = ("onnxruntime", "onnxruntime_cuda", "openvino", "tensorrt", "tvm")


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ("artifact: native", 'Install it: pip install "tunegate[whole-model]"'),
        (
            "runtime: hybrid",
            "hybrid is not installed. Write one of auto, " + ", ".join(RUNTIMES) + ".",
        ),
    ],
)
def test_a_configuration_that_asks_for_what_is_not_there_says_what_is(
    tmp_path: Path, key: str, remedy: str
) -> None:
    target = f"targets:\n  - name: cpu\n    {key}\n"
    made = Workspace(tmp_path / "w", NOT_COMPILED.partition("targets:")[0] + target)
    done = core("run", cwd=made.root)
    assert done.returncode == 2
    (said,) = done.stderr.splitlines()
    assert said.endswith(remedy)


@pytest.mark.e2e
def test_a_job_of_a_ci_that_is_not_installed_says_what_to_install(workspace: Workspace) -> None:
    for line, variables in ((("--ci", "azure"), {}), ((), {"TF_BUILD": "True"})):
        done = core("run", *line, cwd=workspace.root, **variables)
        assert done.returncode == 2
        (said,) = done.stderr.splitlines()
        assert said.endswith('pip install "tunegate[ci-hosts]"')


# What is uploaded: the wheel and the source distribution, as a release builds them.

MAX_FILE_BYTES = 500_000
"""The largest is the prior of the cost model."""
TOP = {
    *("action", "cache", "plugin"),
    *(".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "SECURITY.md"),
    *("action.yml", "pyproject.toml"),
}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(SdistBuilder(str(ROOT)), tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(WheelBuilder(str(ROOT)), tmp_path_factory.mktemp("wheel"))


def test_the_source_distribution_has_what_a_build_needs_and_nothing_else(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        files = [member for member in archive.getmembers() if member.isfile()]
    names = [file.name.split("/", 1)[1] for file in files]
    assert {name.split("/")[0] for name in names} == TOP
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    ours = set(tracked.stdout.decode().split("\0"))
    assert set(names) - ours <= {"PKG-INFO"}  # nothing that only lies in this checkout
    assert all(file.size <= MAX_FILE_BYTES for file in files)


def test_the_wheel_of_the_source_distribution_is_that_of_the_repository(
    sdist: Path, wheel: Path, tmp_path: Path
) -> None:
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from 3.11.4 on
        archive.extractall(tmp_path / "source")
    (source,) = (tmp_path / "source").iterdir()
    assert digests(built(WheelBuilder(str(source)), tmp_path)) == digests(wheel)


def test_both_hold_the_core_alone(sdist: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packages = {name.split("/")[0] for name in archive.namelist()}
    core = {"tunegate", "tunegate_action", "tunegate_cache"}
    assert {name for name in packages if not name.endswith(".dist-info")} == core
    with tarfile.open(sdist) as archive:
        assert not [name for name in archive.getnames() if "/extras/" in name]


def test_an_extra_is_a_wheel_of_its_own_without_its_tests(tmp_path: Path) -> None:
    for extra in ROOT.glob("plugin/extras/*/pyproject.toml"):
        with zipfile.ZipFile(built(WheelBuilder(str(extra.parent)), tmp_path)) as archive:
            packages = {name.split("/")[0] for name in archive.namelist()}
        packages = {name for name in packages if not name.endswith(".dist-info")}
        assert packages == {f"tunegate_{extra.parent.name}"}


def test_its_metadata_is_whole_and_its_page_has_no_broken_link(wheel: Path) -> None:
    metadata = metadata_of(wheel)
    assert metadata["License-Expression"] == "Apache-2.0"
    urls = dict(line.split(", ") for line in metadata.get_all("Project-URL", []))
    assert set(urls) == {"Source", "Documentation", "Changelog", "Issues", "Security"}
    assert all(url.startswith(urls["Source"]) for url in urls.values())
    minimum = metadata["Requires-Python"].removeprefix(">=")
    assert f"Programming Language :: Python :: {minimum}" in metadata.get_all("Classifier", [])
    links = re.findall(r"\]\(([^)]+)\)", str(metadata.get_payload()))
    assert [link for link in links if not re.match(r"https://|#", link)] == []
    assert f"{urls['Source']}/blob/v{metadata['Version']}/docs/commands.md" in links


@pytest.mark.pipelines
def test_twine_takes_both(sdist: Path, wheel: Path) -> None:
    twine = Path(sys.executable).parent / "twine"
    done = run_program([twine, "--no-color", "check", "--strict", sdist, wheel])
    assert (done.returncode, done.stdout.count("PASSED")) == (0, 2), done.stdout


def built(builder: SdistBuilder | WheelBuilder, directory: Path) -> Path:
    (made,) = builder.build(directory=str(directory), versions=["standard"])
    return Path(made)


def digests(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))
