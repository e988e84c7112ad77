"""Our own workflows: who may write what, and that they pass the linters."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder

from tests.house.sources import ROOT
from tests.support.programs import run_program
from tests.support.small_onnx import conv_model, save

FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))
STARTER = ROOT / "plugin" / "tunegate" / "cli" / "handlers" / "workflow.yml"
PROGRAMS = Path(sys.executable).parent
PUBLIC = {"packages", "contents", "pull-requests"}
"""Permissions to write what others see."""


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in WORKFLOWS:
        for name, job in yaml.safe_load(path.read_text())["jobs"].items():
            yield f"{path.name}: {name}", job


def test_a_workflow_has_no_permission_and_each_job_names_its_own() -> None:
    assert all(yaml.safe_load(path.read_text())["permissions"] == {} for path in WORKFLOWS)
    assert [name for name, job in jobs() if "permissions" not in job] == []


def test_what_publishes_waits_for_its_environment() -> None:
    writing = {
        name: job.get("environment")
        for name, job in jobs()
        if any(job["permissions"].get(what) == "write" for what in PUBLIC)
    }
    assert len(writing) == 5
    assert all(writing.values())
    release = dict(jobs())["release.yml: pypi"]
    assert (release["environment"], release["permissions"]) == ("pypi", {"id-token": "write"})


def test_every_action_is_pinned_by_commit_with_its_version_beside_it() -> None:
    used = re.compile(r"uses: (?!\$/)(\S+)@(\S+)(.*)")
    found = [line for path in WORKFLOWS for line in used.findall(path.read_text())]
    assert len(found) > 20
    assert [u for u in found if not re.fullmatch(r"[0-9a-f]{40}", u[1])] == []
    assert [
        u for u in found if not re.fullmatch(r" # v\d+\.\d+\.\d+", u[2].split(" zizmor")[0])
    ] == []
    commits = {(name, commit) for name, commit, _ in found}
    assert len(commits) == len({name for name, _ in commits})  # one version of each


def test_nothing_is_published_before_the_checks() -> None:
    release = yaml.safe_load((FOLDER / "release.yml").read_text())["jobs"]

    def before(name: str) -> set[str]:
        needs = release[name].get("needs", [])
        needed = [needs] if isinstance(needs, str) else needs
        return set(needed).union(*(before(other) for other in needed))

    assert all("check" in before(name) for name in release if name != "check")
    assert {"attest", "index"} <= before("pypi")
    assert "pypi" in before("publish")
    assert before("major") == set(release) - {"major"}


def test_zizmor_finds_nothing_where_it_asks_for_most() -> None:
    options = ("--offline", "--quiet", "--persona", "pedantic")
    command = [str(PROGRAMS / "zizmor"), *options, str(ROOT / ".github")]
    run_program(command, code=0)


@pytest.mark.pipelines
def test_actionlint_finds_nothing() -> None:
    """It checks expressions, needs and outputs, and has shellcheck look at each script."""
    files = map(str, [*WORKFLOWS, *sorted((ROOT / "examples").rglob("*.yml")), STARTER])
    command = [str(PROGRAMS / "actionlint"), "-no-color", "-ignore", "label .+ is unknown", *files]
    run_program(command, code=0)


# The Dockerfile: what its images are made of, that linters pass it, and that its commands run.

TEXT = (ROOT / "Dockerfile").read_text()
IMAGES = {
    "slim": ("/requirements/run-onnxruntime.lock", "/extras/upgrades/requirements.lock"),
    "full": ("/requirements/run.lock", "/extras/deploy/clients.lock"),
    "cuda": ("/requirements/gpu.lock",),
}
PLACES = {"requirements": ROOT / "requirements", "extras": ROOT / "plugin" / "extras"}


class Stage(msgspec.Struct, frozen=True):
    """One FROM, and the instructions until the next one."""

    name: str
    base: str
    lines: tuple[str, ...]

    def said(self, instruction: str) -> list[str]:
        return [line for line in self.lines if line.startswith(f"{instruction} ")]


def stages() -> dict[str, Stage]:
    joined = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE))
    _, *parts = re.split(r"^FROM ", joined, flags=re.MULTILINE)
    found = {}
    for part in parts:
        first, *lines = part.splitlines()
        base, name = first.split(" AS ")
        found[name] = Stage(name, base, tuple(lines))
    return found


def test_the_one_base_from_elsewhere_is_pinned_by_digest() -> None:
    (base,) = [stage.base for stage in stages().values() if stage.base not in stages()]
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", base)


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_starts_tunegate_as_nobody(name: str) -> None:
    (user,) = stages()[name].said("USER")
    assert user == "USER 10001:10001"  # a number: Kubernetes cannot tell that a name is not root
    assert stages()["base"].said("ENTRYPOINT") == ['ENTRYPOINT ["/opt/tunegate/bin/tunegate"]']
    assert f"COPY --from={name}-environment /opt/tunegate /opt/tunegate" in stages()[name].lines


@pytest.mark.parametrize(("name", "locks"), IMAGES.items())
def test_what_an_image_installs_is_locked_with_hashes(name: str, locks: tuple[str, ...]) -> None:
    for lock in locks:
        _, place, rest = lock.split("/", 2)
        assert (PLACES[place] / rest).exists()
    (run,) = stages()[f"{name}-environment"].said("RUN")
    installs = run.split("pip --python ")[1:]
    options = " ".join(f"--requirement {lock}" for lock in locks)
    assert f"--require-hashes {options}" in installs[0]
    assert all("--no-index --no-deps /dist/" in one for one in installs[1:])


def test_no_secret_has_a_way_into_an_image() -> None:
    assert not re.search(r"^ARG|type=secret|type=ssh|TOKEN|PASSWORD|^ADD", TEXT, re.MULTILINE)
    assert {line for stage in stages().values() for line in stage.said("COPY")} == {
        f"COPY --from={name}-environment /opt/tunegate /opt/tunegate" for name in IMAGES
    }
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[1:] == ["*", "!dist/*.whl", "!requirements/*.lock", "!plugin/extras/*/*.lock"]


@pytest.mark.pipelines
def test_hadolint_finds_nothing() -> None:
    command = [str(PROGRAMS / "hadolint"), "--failure-threshold", "style", str(ROOT / "Dockerfile")]
    run_program(command, code=0)


@pytest.mark.pipelines
@pytest.mark.timeout(1800)
def test_the_commands_of_each_image_make_an_environment_that_gates(tmp_path: Path) -> None:
    """The images' own RUNs, one on top of the other, with their absolute paths somewhere else."""
    for project in (ROOT, *(path.parent for path in ROOT.glob("plugin/extras/*/pyproject.toml"))):
        builder = WheelBuilder(str(project))
        list(builder.build(directory=str(tmp_path / "dist"), versions=["standard"]))
    models = tmp_path / "models"
    save(conv_model(), models / "a.onnx")
    save(conv_model(), models / "b.onnx")
    compared = ("compare", "onnxruntime:a.onnx", "onnxruntime:b.onnx")
    looked = ("deploy-gate", "--production", "models:/asr/1", "--candidate", "a.onnx")
    assert tools("slim", tmp_path) == {"boto3", "onnxruntime"}
    assert ran(tmp_path, *compared) == (0, "")
    assert ran(tmp_path, *looked)[1].endswith("python -m pip install 'tunegate-deploy[mlflow]'")
    assert tools("full", tmp_path) == {"boto3", "huggingface_hub", "mlflow", "onnxruntime", "tvm"}
    assert ran(tmp_path, *looked)[1].endswith("such as https://mlflow.example.com.")
    assert tools("cuda", tmp_path) >= {"cuda", "mlflow", "tvm"}
    assert ran(tmp_path, *compared) == (0, "")


def tools(image: str, root: Path) -> set[str]:
    """Those of some packages that are there, after the RUN of the image's environment."""
    (run,) = stages()[f"{image}-environment"].said("RUN")
    command = re.sub(r"RUN (--mount=\S+ *)+", "", run)
    places = {"opt": root / "opt", "dist": root / "dist", **PLACES}
    for name, place in places.items():
        command = command.replace(f" /{name}/", f" {place}/")
    subprocess.run(["bash", "-ec", command], check=True, env=environment(root))
    (packages,) = (root / "opt" / "tunegate").glob("lib/python*/site-packages")
    some = ("boto3", "cuda", "huggingface_hub", "mlflow", "onnxruntime", "tvm")
    return {name for name in some if (packages / name).is_dir()}


def ran(root: Path, *line: str) -> tuple[int, str]:
    """The exit code, and the last line of what went wrong."""
    program = root / "opt" / "tunegate" / "bin" / "tunegate"
    done = run_program([program, *line], cwd=root / "models", env=environment(root))
    return done.returncode, done.stderr.splitlines()[-1] if done.returncode else ""


def environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": f"{PROGRAMS}:/usr/local/bin:/usr/bin:/bin"}
