"""The deploy gate in Kubernetes: a Job, a hook of Argo CD's and a hook of Helm's.

They differ in how they are started. What runs is the same, so most is said of all three.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from tests.house.sources import ROOT
from tests.house.test_workflows import IMAGES

from tunegate.cli.parse import parse
from tunegate.review.config_file import parse_config

FOLDER = Path(__file__).parents[3] / "pipelines"
CHART = FOLDER / "helm" / "tunegate-deploy-gate"
VALUES = {"production": "s3://models/a.onnx", "candidate": "s3://models/b.onnx"}
KUBERNETES = ("1.29", "1.33", "1.37")
FILES = {
    "kubernetes": FOLDER / "kubernetes" / "deploy-gate.yaml",
    "failing": FOLDER / "kubernetes" / "failing.yaml",
    "argo-cd": FOLDER / "argo-cd" / "presync.yaml",
}
HOOKS = {
    "argo-cd": ("argocd.argoproj.io/hook", "PreSync", "argocd.argoproj.io/sync-wave"),
    "helm": ("helm.sh/hook", "pre-upgrade", "helm.sh/hook-weight"),
}
RENDERED = [*FILES, pytest.param("helm", marks=pytest.mark.pipelines)]


def resources(name: str) -> list[dict[str, Any]]:
    if name == "helm":
        return rendered(VALUES)
    return list(yaml.safe_load_all(FILES[name].read_text()))


def rendered(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the objects that Helm's own library makes of the chart."""
    helm = pytest.importorskip("helm_python", reason="make pipelines-environment installs Helm")
    with helm.Chart.load(CHART) as chart:
        text = "\n---\n".join(chart.render(values=dict(values), name="shop").values())
    return [each for each in yaml.safe_load_all(text) if each]


def job_of(found: list[dict[str, Any]]) -> dict[str, Any]:
    (job,) = (each for each in found if each["kind"] == "Job")
    return dict(job)


def pod_of(found: list[dict[str, Any]]) -> dict[str, Any]:
    return dict(job_of(found)["spec"]["template"]["spec"])


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (chart["version"], chart["appVersion"]) == (package, package)


@pytest.mark.parametrize("name", RENDERED)
def test_a_job_is_tried_once_and_ends(name: str) -> None:
    job = job_of(resources(name))
    assert job["spec"]["backoffLimit"] == 0
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert 60 <= job["spec"]["activeDeadlineSeconds"] <= 3600


@pytest.mark.parametrize("name", RENDERED)
def test_its_process_can_write_to_its_scratch_and_ask_the_cluster_nothing(name: str) -> None:
    pod = pod_of(resources(name))
    (container,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (
        True,
        10001,
    )
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    writable = [each for each in container["volumeMounts"] if not each.get("readOnly")]
    assert [each["mountPath"] for each in writable] == ["/tmp"]
    assert "sizeLimit" in pod["volumes"][-1]["emptyDir"]


@pytest.mark.parametrize("name", RENDERED)
def test_its_cores_and_its_device_are_its_own(name: str) -> None:
    (container,) = pod_of(resources(name))["containers"]
    limits = container["resources"]["limits"]
    assert container["resources"]["requests"] == limits
    assert str(limits["cpu"]).isdigit()
    if name != "failing":
        assert limits["nvidia.com/gpu"] == "1"
        pod = pod_of(resources(name))
        assert pod["nodeSelector"]
        assert pod["tolerations"]


@pytest.mark.parametrize("name", RENDERED)
def test_its_image_is_one_that_a_release_makes(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (container,) = pod_of(resources(name))["containers"]
    repository, _, tag = container["image"].partition(":")
    assert repository == f"ghcr.io{urlsplit(project['urls']['Source']).path}"
    assert tag in {f"{project['version']}-{image}" for image in IMAGES}


@pytest.mark.parametrize("name", RENDERED)
def test_its_command_and_its_configuration_are_ours(name: str) -> None:
    found = resources(name)
    (container,) = pod_of(found)["containers"]
    parse(container["args"])
    (config,) = (each for each in found if each["kind"] == "ConfigMap")
    assert parse_config(config["data"]["tunegate.yaml"], name).targets
    mounted = {
        each["configMap"]["name"] for each in pod_of(found)["volumes"] if "configMap" in each
    }
    assert mounted == {config["metadata"]["name"]}


@pytest.mark.parametrize("name", ["argo-cd", pytest.param("helm", marks=pytest.mark.pipelines)])
def test_what_a_hook_needs_comes_before_it(name: str) -> None:
    hook, when, order = HOOKS[name]
    found = resources(name)
    assert {each["metadata"]["annotations"][hook] for each in found} == {when}
    weights = {each["kind"]: int(each["metadata"]["annotations"][order]) for each in found}
    assert weights["Job"] > max(weights["ConfigMap"], weights["ServiceAccount"])


@pytest.mark.pipelines
@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("name", [*FILES, "helm"])
def test_kubernetes_knows_every_field(name: str, version: str) -> None:
    schemas = pytest.importorskip(
        "kubernetes_validate", reason="make pipelines-environment installs the schemas"
    )
    for each in resources(name):
        schemas.validate(each, version, strict=True)


@pytest.mark.pipelines
def test_helm_takes_the_chart_and_refuses_values_that_are_wrong() -> None:
    helm = pytest.importorskip("helm_python", reason="make pipelines-environment installs Helm")
    found = helm.lint(CHART, values=VALUES, strict=True)
    assert [each for each in found["messages"] if each["severity"] > 1] == []
    for wrong in ({}, {**VALUES, "candidate": ""}, {**VALUES, "image": {"digest": "latest"}}):
        with pytest.raises(helm.HelmError):
            rendered(wrong)


@pytest.mark.pipelines
def test_values_of_the_chart_reach_the_job() -> None:
    digest = f"sha256:{'1' * 64}"
    given = {
        "image": {"digest": digest},
        "extraArgs": ["--minutes=10"],
        "nodeSelector": None,
        "envFrom": [{"secretRef": {"name": "models"}}],
        "serviceAccount": {"annotations": {"example.com/role": "reader"}},
    }
    found = rendered({**VALUES, **given})
    (container,) = pod_of(found)["containers"]
    assert container["image"].endswith(f"@{digest}")
    assert container["args"][-1] == "--minutes=10"
    assert container["envFrom"] == [{"secretRef": {"name": "models"}}]
    account = next(each for each in found if each["kind"] == "ServiceAccount")
    assert account["metadata"]["annotations"]["example.com/role"] == "reader"


@pytest.mark.pipelines
@pytest.mark.parametrize(("candidate", "exit_code"), [("candidate", 1), ("production", 0)])
def test_the_failing_example_fails_by_its_candidate(
    candidate: str, exit_code: int, tmp_path: Path
) -> None:
    """The container's command, on files that lie as a ConfigMap's do: behind links."""
    found = resources("failing")
    mount(next(each for each in found if each["kind"] == "ConfigMap"), tmp_path)
    (container,) = pod_of(found)["containers"]
    text = "\n".join(container["args"]).replace("/candidate.", f"/{candidate}.")
    arguments = re.sub(r"=/(?:tmp/)?", f"={tmp_path}/", text).splitlines()
    done = subprocess.run(
        [sys.executable, "-m", "tunegate", *arguments],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == exit_code, done.stdout + done.stderr


def mount(config: dict[str, Any], directory: Path) -> None:
    place = directory / "config" / "..2026_01_31"
    place.mkdir(parents=True)
    (directory / "config" / "..data").symlink_to(place.name)
    files = {name: text.encode() for name, text in config["data"].items()}
    files |= {name: base64.b64decode(text) for name, text in config["binaryData"].items()}
    for name, content in files.items():
        (place / name).write_bytes(content)
        (directory / "config" / name).symlink_to(f"..data/{name}")
