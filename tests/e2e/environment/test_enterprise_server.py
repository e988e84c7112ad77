"""The action on a GitHub Enterprise Server: everything goes to the API that the job names."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.adversary.action_run import Job
from tests.ci.github.github_server import github_server
from tests.ci.json_server import LoopbackServer, QuietHandler, serving

ROOT = Path(__file__).resolve().parents[3]


class Proxy(LoopbackServer):
    """Whatever is asked of another host than loopback arrives here, and is refused."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.asked: list[str] = []


class _Handler(QuietHandler):
    server: Proxy

    def do_CONNECT(self) -> None:
        self.server.asked.append(self.path)
        self.send_error(403)

    do_GET = do_POST = do_PATCH = do_CONNECT


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with serving(Proxy()) as server:
        yield server


def test_the_comment_goes_to_the_jobs_own_api_and_nothing_to_another_host(
    tmp_path: Path, proxy: Proxy
) -> None:
    job = Job(tmp_path)
    job.checkout(job.merge)
    with github_server() as server:
        ended = job.run(
            "pull_request",
            job.pull_request(),
            GITHUB_API_URL=server.url,
            GITHUB_SERVER_URL="https://github.acme.example",
            TUNEGATE_COMMENT="always",
            https_proxy=proxy.url,
            http_proxy=proxy.url,
            no_proxy="127.0.0.1",
        )
    assert ended.exit_code == 0, ended.log
    assert len(server.comments) == 1
    assert not proxy.asked
    assert "github.com" not in server.comments[0]["body"]


def test_no_step_is_an_action_of_somebody_else() -> None:
    """An Enterprise Server may not have it, and a container may not have its Node."""
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    assert all("uses" not in step for step in steps)


def test_no_step_has_a_path_of_the_host_in_its_text() -> None:
    """The runner translates variables for a job in a container, and no text of a step."""
    for step in yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert "$GITHUB_ACTION_PATH/action/bootstrap.py" in step["run"]
