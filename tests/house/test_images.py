"""The Dockerfile: what its images are made of, that linters pass it, and that its commands run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder

from tests.house.sources import ROOT
from tests.support.small_onnx import conv_model, save

TEXT = (ROOT / "Dockerfile").read_text()
IMAGES = {"slim": "run-onnxruntime.lock", "full": "run.lock", "cuda": "gpu.lock"}
PROGRAMS = Path(sys.executable).parent


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
    elsewhere = [stage.base for stage in stages().values() if stage.base not in stages()]
    (base,) = elsewhere
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", base)


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_starts_tunegate_as_nobody(name: str) -> None:
    (user,) = stages()[name].said("USER")
    assert user == "USER 10001:10001"  # a number: Kubernetes cannot tell that a name is not root
    assert stages()["base"].said("ENTRYPOINT") == ['ENTRYPOINT ["/opt/tunegate/bin/tunegate"]']
    assert f"COPY --from={name}-environment /opt/tunegate /opt/tunegate" in stages()[name].lines


@pytest.mark.parametrize(("name", "lock"), IMAGES.items())
def test_what_an_image_installs_is_locked_with_hashes(name: str, lock: str) -> None:
    assert (ROOT / "requirements" / lock).exists()
    (run,) = stages()[f"{name}-environment"].said("RUN")
    installs = run.split("pip --python ")[1:]
    assert f"--require-hashes --requirement /requirements/{lock}" in installs[0]
    assert all("--no-index --no-deps /dist/" in one for one in installs[1:])


def test_no_secret_has_a_way_into_an_image() -> None:
    assert not re.search(r"^ARG|type=secret|type=ssh|TOKEN|PASSWORD|^ADD", TEXT, re.MULTILINE)
    assert {line for stage in stages().values() for line in stage.said("COPY")} == {
        f"COPY --from={name}-environment /opt/tunegate /opt/tunegate" for name in IMAGES
    }
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[1:] == ["*", "!dist/*.whl", "!requirements/*.lock"]


def test_a_release_builds_each_image() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]
    targets = {tuple(jobs[job]["strategy"]["matrix"]["target"]) for job in ("image", "index")}
    assert targets == {tuple(IMAGES)}


@pytest.mark.pipelines
def test_hadolint_finds_nothing() -> None:
    command = [str(PROGRAMS / "hadolint"), "--failure-threshold", "style", str(ROOT / "Dockerfile")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.pipelines
@pytest.mark.timeout(900)
def test_the_commands_of_the_slim_image_make_an_environment_that_gates(tmp_path: Path) -> None:
    """The image's own RUN, with its absolute paths somewhere else."""
    list(WheelBuilder(str(ROOT)).build(directory=str(tmp_path / "dist"), versions=["standard"]))
    (run,) = stages()["slim-environment"].said("RUN")
    command = re.sub(r"RUN (--mount=\S+ *)+", "", run)
    places = {
        "opt": tmp_path / "opt",
        "dist": tmp_path / "dist",
        "requirements": ROOT / "requirements",
    }
    for name, place in places.items():
        command = command.replace(f" /{name}/", f" {place}/")
    subprocess.run(["bash", "-ec", command], check=True, env=environment(tmp_path))
    python = tmp_path / "opt" / "tunegate" / "bin" / "python"
    assert not list(python.parents[1].glob("lib/python*/site-packages/tvm"))
    models = tmp_path / "models"
    save(conv_model(), models / "a.onnx")
    save(conv_model(), models / "b.onnx")
    models_of_onnxruntime = ("onnxruntime:a.onnx", "onnxruntime:b.onnx")
    done = subprocess.run(
        [python.with_name("tunegate"), "compare", *models_of_onnxruntime],
        cwd=models,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": f"{PROGRAMS}:/usr/local/bin:/usr/bin:/bin"}
