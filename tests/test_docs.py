"""The documentation says what is so: configurations load, commands parse, links resolve."""

import ast
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.house.sources import ROOT as SOURCES_ROOT
from tests.support.documentation import CODE, anchors, pages, require_valid
from tunegate import errors
from tunegate.cli.help_pages import page
from tunegate.cli.parse import parse
from tunegate.review import config_file
from tunegate.wording import PAGES as WordingPAGES
from tunegate.wording import page_address

ROOT = Path(__file__).resolve().parents[1]
PAGES = pages()
WORKFLOWS = [ROOT / "action.yml", ROOT / ".github", *sorted((ROOT / "examples").rglob("*.yml"))]


def blocks(language: str) -> list[tuple[str, str]]:
    return [
        (page.name, body)
        for page in PAGES
        for body in re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)
    ]


CONFIGS = [(name, body) for name, body in blocks("yaml") if body.startswith("models:")]
COMMANDS = sorted(
    {
        line.partition("#")[0].strip()
        for _, body in blocks("sh")
        for line in body.splitlines()
        if line.startswith("tunegate ")
    }
    | {
        command
        for page in PAGES
        for command in re.findall(
            r"`(tunegate (?:init|doctor|demo|run|detect|plan|tune|gate|compare )[^`]*)`",
            page.read_text(),
        )
    }
)


@pytest.mark.parametrize(("page", "text"), CONFIGS)
def test_a_configuration_in_the_documentation_loads(page: str, text: str) -> None:
    assert config_file.parse_config(text, page).models


def test_there_are_configurations_and_commands_to_test() -> None:
    assert len(CONFIGS) >= 2
    assert len(COMMANDS) >= 3


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_in_the_documentation_parses(command: str) -> None:
    words = shlex.split(command)[1:]
    assert page(words) or parse(words).command.name


def test_options_that_a_pipeline_passes_on_parse() -> None:
    """The lists `arguments: [--minutes, "10"]` and `options: ['--cache-mode=ro']`."""
    found = [
        re.findall(r"""[^\s,'"]+""", listed)
        for each in {*PAGES, *(ROOT / "plugin").rglob("*.md")}
        for listed in re.findall(r"(?:arguments|options):[ `]*\[([^]]*-[^]]*)\]", each.read_text())
    ]
    assert len(found) >= 4
    for words in found:
        parse(["run", *(word.replace("…", "main") for word in words)])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_leads_to_a_file_and_to_a_heading_of_it(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", CODE.sub("", page.read_text()))
    for target, anchor in links:
        if target.startswith("http"):
            continue
        file = page.parent / target if target else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{target}#{anchor}"


def test_every_input_and_output_of_the_action_is_in_its_page() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    page = (ROOT / "docs" / "how-to" / "github.md").read_text()
    for name in (*action["inputs"], *action["outputs"]):
        assert f"`{name}`" in page


def test_the_exit_codes_of_the_readme_are_those_of_the_code() -> None:
    page = (ROOT / "README.md").read_text()
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    constants = (value for name, value in vars(errors).items() if name.isupper())
    assert listed == {value for value in constants if isinstance(value, int)}


def test_no_expression_is_spliced_into_a_script_of_the_action() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert len(action["description"]) < 125
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert "exec " in step["run"].strip().splitlines()[-1]


NEVER_REQUIRED = {"forks.yml", "forks-comment.yml", "cache-upkeep.yml", "attest.yml"}
"""A fork's own run decides nothing, the upkeep of a cache judges nothing, and evidence is about a
commit that is merged."""


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in sorted((ROOT / "examples").rglob("*.yml"))
        if path.name not in NEVER_REQUIRED
    ],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_a_job_that_may_be_required_is_never_skipped(path: Path) -> None:
    """A skipped job counts as a success."""
    jobs = yaml.safe_load(path.read_text())["jobs"]
    *others, last = jobs
    if not others:
        assert "if" not in jobs[last]
        return
    assert jobs[last]["if"] == "always()"
    assert jobs[last]["needs"] == others
    (step,) = jobs[last]["steps"]
    assert step["env"] == {"GATE": f"${{{{ needs.{others[-1]}.result }}}}"}
    assert step["run"] == 'test "$GATE" = success'


def test_zizmor_finds_nothing_in_the_workflows() -> None:
    zizmor = Path(sys.executable).parent / "zizmor"
    starter = ROOT / "plugin" / "tunegate" / "cli" / "handlers" / "workflow.yml"
    command = [str(zizmor), "--offline", "--quiet", *map(str, WORKFLOWS), str(starter)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-actions", ["action.yml"]),
        (
            "vendor.github-workflows",
            [
                ".github/workflows/*.yml",
                "examples/**/*.yml",
                "plugin/tunegate/cli/handlers/workflow.yml",
            ],
        ),
        ("vendor.dependabot", [".github/dependabot.yml"]),
        ("vendor.gitlab-ci", ["plugin/pipelines/gitlab.yml"]),
    ],
)
def test_pipeline_files_are_valid_for_their_schemas(schema: str, files: list[str]) -> None:
    found = [sorted(ROOT.glob(pattern)) for pattern in files]
    assert all(found)
    require_valid(schema, [file for each in found for file in each])


# Messages name pages by an address: whoever installed the package has no folder of them.

SOURCES = sorted((SOURCES_ROOT / "plugin" / "tunegate").rglob("*.py"))


def texts(source: str) -> Iterator[str]:
    """The strings that are no docstrings."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            yield str(node.value)


def test_the_address_is_that_of_the_project() -> None:
    project = tomllib.loads((SOURCES_ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["urls"]["Documentation"] == WordingPAGES
    assert page_address("commands") == f"{WordingPAGES}/commands.md"


def test_no_message_names_a_path_of_the_documentation_and_every_page_is_there() -> None:
    named = set()
    for path in SOURCES:
        source = path.read_text("utf-8")
        named |= set(re.findall(r"page_address\(.([\w/-]+).\)", source))
        if "docs/" in source:
            told = [text for text in texts(source) if re.search(r"docs/[\w-]+\.md", text)]
            assert not told or path.name == "init.py", path  # which makes an address of it
    assert named
    assert all((SOURCES_ROOT / "docs" / f"{name}.md").is_file() for name in named)
