from __future__ import annotations

from pathlib import Path

import pytest
from tests.ci.json_server import serving

from ci_hosts_tests.azure.azure_server import TOKEN, AzureServer
from ci_hosts_tests.recorded_environment import recorded_environment
from tunegate.ci.protocol import (
    Annotation,
    AskedRevisions,
    HostRefusedError,
    JobEvent,
    JobReport,
    Links,
    Usual,
)
from tunegate_ci_hosts.azure.host import AzureHost

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


def test_a_thread_is_written_where_a_token_is_and_says_what_is_missing_elsewhere() -> None:
    event = AzureHost(JOB).event(AskedRevisions())
    with serving(AzureServer()) as server:
        job = {**JOB, "SYSTEM_COLLECTIONURI": f"{server.url}/", "SYSTEM_ACCESSTOKEN": TOKEN}
        AzureHost(job).comment(event, "o", "report")
        assert len(server.threads) == 1
        for missing in ("SYSTEM_ACCESSTOKEN", "SYSTEM_COLLECTIONURI", "BUILD_REPOSITORY_PROVIDER"):
            with pytest.raises(HostRefusedError) as caught:
                AzureHost({**job, missing: ""}).comment(event, "o", "report")
            assert TOKEN not in str(caught.value)
        with pytest.raises(HostRefusedError, match="of no pull request"):
            AzureHost(job).comment(JobEvent(revisions=Usual()), "o", "report")
        assert len(server.threads) == 1
