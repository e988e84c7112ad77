from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.ci_hosts.recorded_environment import recorded_environment
from tunegate.ci_hosts.azure.host import AzureHost
from tunegate.ci_hosts.protocol import Annotation, JobReport, Links

JOB = recorded_environment("azure-pull-request")


def test_a_run_has_a_page() -> None:
    place = "https://dev.azure.com/acme/Vision%20Models/_build/results?buildId=4711&view=results"
    assert AzureHost(JOB).links(Path("o")) == Links(run=place)


def test_a_report_is_commands_and_a_page_in_the_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = {"verdict": "pass", "changed": '["a"]'}
    annotation = Annotation(level="warning", title="t", text="x")
    AzureHost(JOB).tell(
        JobReport(outputs=outputs, annotations=[annotation], summary="# all", directory=tmp_path)
    )
    page = tmp_path / "ci-summary.md"
    assert page.read_text() == "# all"
    assert capsys.readouterr().out.splitlines() == [
        "##vso[task.logissue type=warning;]t: x",
        "##vso[task.setvariable variable=TUNEGATE_VERDICT;isOutput=true;]pass",
        f"##vso[task.uploadsummary]{page}",
    ]
