import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ci.gitlab.test_event import REQUEST
from tests.plugins.registered_plugin import install_into, register
from tests.support.present import present
from tunegate.ci import protocol, registry
from tunegate.ci.events import zone_of_branch, zone_of_pull_request, zone_of_queue
from tunegate.ci.github.host import GitHubHost
from tunegate.ci.host_files import dotenv, write_host_file
from tunegate.ci.job_results import ConfigPlace, place_of, run_agent
from tunegate.ci.registry import NoCiHost
from tunegate.errors import ConfigError, ConfigKey, EnvironmentUnfitError, OutputError
from tunegate.review import config_file

GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "a/b",
    "GITHUB_RUN_ID": "17",
}


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that packages are installed into."""
    install_into(tmp_path, monkeypatch)
    return tmp_path


def test_the_host_of_this_job_is_found_and_elsewhere_there_is_none() -> None:
    assert isinstance(registry.opened_host("auto", GITHUB), GitHubHost)
    assert isinstance(registry.opened_host("auto", {}), NoCiHost)


def test_the_event_of_this_job_is_told_without_being_named() -> None:
    assert present(registry.job_event({**REQUEST, "GITLAB_CI": "true"})).pull_request is not None
    assert present(registry.job_event({})).pull_request is None


def test_a_job_that_contradicts_itself_has_no_event_and_ends_nothing() -> None:
    assert registry.job_event(GITHUB) is None


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"Known are .*github.*none"):
        registry.opened_host("hubgit", {})


def test_a_run_has_an_address_where_its_host_says_one() -> None:
    assert registry.run_address(GITHUB) == "https://github.com/a/b/actions/runs/17"
    assert registry.run_address({"BUILD_URL": "https://ci/1"}) == "https://ci/1"
    assert registry.run_address({}) == ""


def test_what_looks_like_two_hosts_must_be_named(environment: Path) -> None:
    register(
        environment, "twin-1.0", registry.HOST_GROUP, "twin", "tunegate.ci.github.host:GitHubHost"
    )
    assert isinstance(registry.opened_host("twin", {}), GitHubHost)
    with pytest.raises(ConfigError, match=r"github and of twin.*--ci"):
        registry.opened_host("auto", GITHUB)
    assert registry.run_address(GITHUB) == ""


def test_a_package_that_cannot_be_used_is_named_when_it_is_asked_for(environment: Path) -> None:
    register(environment, "broken-1.0", registry.HOST_GROUP, "broken", "nowhere_to_be_found:Host")
    assert isinstance(registry.opened_host("github", {}), GitHubHost)
    with pytest.raises(EnvironmentUnfitError, match=r"broken 1\.0: .* cannot be loaded"):
        registry.opened_host("broken", {})


def test_a_host_that_fails_costs_no_more_than_the_address(environment: Path) -> None:
    register(environment, "odd-1.0", registry.HOST_GROUP, "odd", "tunegate.errors:PASS")
    assert registry.run_address(GITHUB) == ""


def test_no_package_takes_the_name_of_a_host_of_ours(environment: Path) -> None:
    register(
        environment, "thief-1.0", registry.HOST_GROUP, "github", "tunegate.ci.registry:GitHubHost"
    )
    assert isinstance(registry.opened_host("github", {}), GitHubHost)


@pytest.mark.parametrize("value", ["json:JSONDecodeError", "math:pi", "math:sqrt"])
def test_what_is_no_host_is_named_and_is_no_bug_of_ours(environment: Path, value: str) -> None:
    register(environment, "odd-1.0", registry.HOST_GROUP, "odd", value)
    with pytest.raises(EnvironmentUnfitError, match=r"^odd 1\.0: .*no CI host"):
        registry.opened_host("auto", {})
    assert isinstance(registry.opened_host("none", {}), NoCiHost)


COMMAND_HOST_GITHUB = {"GITHUB_ACTIONS": "true"}


def test_a_command_that_names_no_ci_has_the_host_of_the_one_that_it_runs_in() -> None:
    assert registry.command_host("auto", {}, is_named=False, is_json=False) is None
    found = registry.command_host("auto", COMMAND_HOST_GITHUB, is_named=False, is_json=False)
    assert isinstance(found, GitHubHost)


def test_what_is_printed_for_a_program_stays_as_it_is() -> None:
    found = registry.command_host("auto", COMMAND_HOST_GITHUB, is_named=False, is_json=True)
    assert isinstance(found, registry.UntoldHost)


CONFIG = """\
models:
  - path: "*.onnx"
targets:
  - name: cpu
  - name: gpu
    kind: cuda
cache:
  url: here
gate:
  margin-percent: {margin}
  pairs: {pairs}
"""


@pytest.mark.parametrize(
    ("margin", "pairs", "line"),
    [("'3%'", "4", 10), ("3", "99", 11), ("[", "4", 12), ("3", "4\n  margine: 3", 12)],
)
def test_a_problem_of_the_configuration_has_a_line(
    tmp_path: Path, margin: str, pairs: str, line: int
) -> None:
    path = tmp_path / "ci" / "tunegate.yaml"
    path.parent.mkdir()
    path.write_text(CONFIG.format(margin=margin, pairs=pairs))
    with pytest.raises(ConfigError) as caught:
        config_file.load_config(path)
    assert place_of(caught.value.about, tmp_path) == ConfigPlace("ci/tunegate.yaml", line)


@pytest.mark.parametrize(
    "about", [None, ConfigKey("/etc/tunegate.yaml", line=3), ConfigKey("gone.yaml", "gate")]
)
def test_an_error_about_no_file_of_the_workspace_has_none(
    tmp_path: Path, about: ConfigKey | None
) -> None:
    assert place_of(about, tmp_path) is None


ZONE = re.compile(r"pr(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+")


def test_only_the_default_branch_is_main() -> None:
    assert zone_of_branch("a/b", "main", "main") == "main"
    assert zone_of_branch("a/b", "main", "trunk") == "pr/a/b/branch_main"
    assert zone_of_branch("a/b", "", "") == "pr/a/b/branch_"
    assert zone_of_queue("a/b") == "pr/a/b/queue"


def test_a_plain_name_of_a_branch_is_that_of_its_zone() -> None:
    assert zone_of_branch("a/b", "release2", "main") == "pr/a/b/branch_release2"
    assert zone_of_branch("a/b", "a/b", "main").startswith("pr/a/b/branch_a_b-")


@given(st.text(max_size=150), st.text(max_size=150))
def test_a_branch_is_a_zone_of_its_project_or_refused(project: str, branch: str) -> None:
    try:
        found = zone_of_branch(project, branch, "main")
    except ConfigError:
        return
    assert found == "main" or (ZONE.fullmatch(found) and len(found) <= 120)
    assert found != "main" or branch == "main"


@pytest.mark.parametrize("project", ["", "/", "..", "a/../b", "a//b", "a b", "é"])
def test_what_names_no_project_is_refused(project: str) -> None:
    with pytest.raises(ConfigError, match="name no project"):
        zone_of_pull_request(project, 7)


@pytest.mark.parametrize("project", ["/".join(["group"] * 30), "acme/.models", "-x/models"])
def test_names_that_no_zone_can_have_get_zones_of_their_own(project: str) -> None:
    zones = {zone_of_pull_request(project, number) for number in (7, 8)}
    assert len(zones) == 2
    assert all(zone.startswith("pr/long/") and len(zone) <= 120 for zone in zones)


def test_a_token_never_shows_itself() -> None:
    token = protocol.Secret("ghs_secret")
    assert "ghs_secret" not in f"{token} {token!r} {[token]}"
    assert token.reveal() == "ghs_secret"
    assert token
    assert not protocol.Secret("")


def test_what_a_ci_would_be_told_stands_in_files_and_in_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    annotation = protocol.Annotation(level="error", title="t", text="bad")
    report = protocol.JobReport(
        outputs={"verdict": "fail"}, annotations=[annotation], summary="page", directory=tmp_path
    )
    NoCiHost({}).tell(report)
    assert json.loads((tmp_path / "ci-outputs.json").read_text()) == {"verdict": "fail"}
    (told,) = json.loads((tmp_path / "ci-annotations.json").read_text())
    assert (told["level"], told["text"]) == ("error", "bad")
    assert (tmp_path / "ci-summary.md").read_text() == "page"
    assert capsys.readouterr().err == "t: error: bad\n"


def test_what_is_compared_and_where_the_job_is_the_host_says() -> None:
    host = registry.UntoldHost(GitHubHost(GITHUB))
    assert not host.is_here(GITHUB)
    assert host.links(Path()) == GitHubHost(GITHUB).links(Path())
    with pytest.raises(ConfigError, match="GITHUB_EVENT_NAME is not set"):
        host.event(protocol.AskedRevisions())
    host.comment(host.event(protocol.AskedRevisions(base="a", head="b")), "name", "text")


# Files that a host writes.


def test_no_link_is_written_through(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "ci-x").symlink_to(precious)
    write_host_file(tmp_path, "x", "ours")
    assert precious.read_text() == "precious"


def test_a_directory_that_is_gone_is_an_error_that_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError):
        write_host_file(tmp_path / "file", "x", "")


@given(st.dictionaries(st.sampled_from("abc"), st.text(max_size=30)))
def test_every_line_is_one_variable_of_ours_whatever_its_value_was(values: dict[str, str]) -> None:
    for line in dotenv(values, limit_bytes=1000).split("\n")[:-1]:
        name, _, value = line.partition("=")
        assert values[name.removeprefix("TUNEGATE_").lower()] == value
        assert not set(value) & set("\"'$`# ")


COMMAND = protocol.AgentCommand(
    program="some-agent", arguments=("annotate", "a b"), text="# é", variables=("AGENT_TOKEN",)
)


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """A program that writes down what it was given."""
    program = tmp_path / "bin" / "some-agent"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\ncd {tmp_path}\nprintf "%s|" "$@" >arguments\ncat >text\nenv >variables\n'
        'test "$AGENT_TOKEN" != wrong || { echo "$AGENT_TOKEN"; exit 3; }\n'
    )
    program.chmod(0o755)
    return program


def test_the_agent_gets_arguments_text_and_its_own_variables(
    agent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANOTHER_SECRET", "y")
    environment = {"PATH": f"{agent.parent}:/usr/bin:/bin", "AGENT_TOKEN": "x"}
    assert run_agent(COMMAND, environment) == ""
    assert (tmp_path / "arguments").read_text() == "annotate|a b|"
    assert (tmp_path / "text").read_text() == "# é"
    given = (tmp_path / "variables").read_text()
    assert "AGENT_TOKEN=x\n" in given
    assert "ANOTHER_SECRET" not in given


def test_no_agent_is_found_by_a_relative_path(agent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkout is the working directory: it could hold a program of this name."""
    monkeypatch.chdir(agent.parent)
    for searched in ("", ".", ":", "../bin"):
        assert run_agent(COMMAND, {"PATH": searched}) == "some-agent was not found"
    here = protocol.AgentCommand(program="some-agent", arguments=(), text="", directory=".")
    assert run_agent(here, {"PATH": ""}) == "some-agent was not found"


def test_what_cannot_be_run_is_said(agent: Path) -> None:
    agent.write_text("#!/nowhere\n")
    assert "cannot be run" in run_agent(COMMAND, {"PATH": str(agent.parent)})
