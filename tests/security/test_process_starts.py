"""Every place in the product that starts a process or loads a library, found in the
syntax tree: none is forgotten."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STARTERS = {
    "action/bootstrap.py": {"os.execve", "sys.executable"},
    "action/tunegate_action/wider_environment.py": {"os.execve"},
    "action/tunegate_environment/children.py": {"subprocess.Popen"},
    "action/tunegate_environment/installing.py": {"sys.executable"},
    "action/tunegate_environment/kept.py": {"sys.executable"},
    "plugin/tunegate/isolation.py": {"os.execv", "sys.executable"},
    "plugin/tunegate/system/processes/interpreter.py": {
        "subprocess.Popen",
        "subprocess.run",
        "sys.executable",
    },
    "plugin/tunegate/ci/job_results.py": {"subprocess.run"},
    "plugin/extras/deploy/tunegate_deploy/model_sources/login_program.py": {"subprocess.Popen"},
    "plugin/tunegate/system/git/process.py": {"subprocess.Popen"},
    "plugin/extras/upgrades/tunegate_upgrades/environments/uv.py": {
        "subprocess.run",
        "sys.executable",
    },
    "plugin/extras/upgrades/tunegate_upgrades/environments/kept_environments.py": {
        "sys.executable"
    },
    "plugin/tunegate/system/machine/packages.py": {"sys.executable"},  # names it to the user
    "plugin/tunegate/system/processes/user_command.py": {"subprocess.Popen"},
}
"""The doors: the environment of the Action, the same process again, our own Python, the agent of
a CI, a helper program of docker's, git, uv, which makes environments of wheels, and a command line
of the user's, which runs where the user is."""
OF_SUBPROCESS = {
    "DEVNULL",
    "PIPE",
    "STDOUT",
    "TimeoutExpired",
    "CalledProcessError",
    "CompletedProcess",
}
LOADING = {
    *("CDLL", "PyDLL", "cdll", "LoadLibrary", "load_module", "load_dll"),
    *("register_custom_ops_library", "register_execution_provider_library", "load_library"),
}
LOADERS = {
    ("action/tunegate_environment/children.py", "CDLL"),  # the same
    (
        "plugin/tunegate/system/processes/run_child.py",
        "CDLL",
    ),  # the C library that is loaded already
    (
        "plugin/tunegate/models/reference/onnx_runtime.py",
        "register_custom_ops_library",
    ),  # one that the base's configuration names, by its digest
    ("plugin/tunegate/compiler/runtime.py", "CDLL"),  # a part of TVM
    ("plugin/tunegate/compiler/shared_memory.py", "CDLL"),  # the driver, by its name, as TVM does
    ("plugin/tunegate/compiler/runtime.py", "load_module"),  # an artifact's
    ("plugin/tunegate/compiler/worker.py", "load_module"),  # a candidate's
    (
        "plugin/extras/whole_model/tunegate_whole_model/native/loader.py",
        "CDLL",
    ),  # a native artifact's
}
STARTING = ("exec", "spawn", "posix_spawn", "fork", "popen", "system", "startfile")
OTHER_STARTERS = {"multiprocessing", "pty", "asyncio", "runpy", "git", "sh", "pexpect"}
ALLOWED_ELSEWHERE = {("plugin/tunegate/system/processes/isolated_start.py", "runpy")}
Nodes = list[ast.Attribute | ast.Import | ast.ImportFrom]
KINDS = (ast.Attribute, ast.Import, ast.ImportFrom)
COMMAND_LINES = ("_command_line(", "[str(python), *_FLAGS, str(script), ", "[*_GUARD, ")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_processes_are_started_at_the_doors_only() -> None:
    found = {name_of(path): set(starts(nodes)) for path, nodes in telling_nodes()}
    assert {name: kinds for name, kinds in found.items() if kinds} == STARTERS


def test_nothing_else_that_could_start_one_is_imported() -> None:
    found = {(name_of(path), each) for path, nodes in telling_nodes() for each in modules(nodes)}
    assert {each for each in found if each[1] in OTHER_STARTERS} == ALLOWED_ELSEWHERE


def test_no_starter_hides_behind_another_name() -> None:
    names = {"subprocess", "os", "sys"}
    for path, nodes in telling_nodes():
        for node in nodes:
            assert not (isinstance(node, ast.ImportFrom) and node.module in names), path
            if isinstance(node, ast.Import):
                assert not [each for each in node.names if each.asname and each.name in names]


def test_a_python_of_ours_gets_flags_an_environment_and_a_directory() -> None:
    tree = ast.parse((ROOT / "plugin/tunegate/system/processes/interpreter.py").read_text())
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    starters = {"subprocess.Popen", "subprocess.run"}
    starts = [call for call in calls if dotted(call.func) in starters]
    through_run = [call for call in calls if ast.unparse(call.func) == "_run"]
    lines = [ast.unparse(call.args[0]) for call in (*starts, *through_run)]
    lines.remove("line")  # what `_run` is given
    assert len(starts) == 3
    assert len(lines) == 4
    assert all(line.startswith(COMMAND_LINES) for line in lines)
    for call in starts:
        given = {word.arg: ast.unparse(word.value) for word in call.keywords}
        assert given["env"] in {"child_environment(variables)", "child_environment({})"}
        assert given["cwd"] == "_NOWHERE"


def test_the_action_isolates_every_python_that_it_starts() -> None:
    environment = ROOT / "action" / "tunegate_environment"
    installing = (environment / "installing.py").read_text()
    assert installing.count('"-m"') == installing.count('"-I", "-m"') == 3
    children = (environment / "children.py").read_text()
    assert 'cwd="/",\n        env=absolute_only(environment),' in children
    wider = (ROOT / "action" / "tunegate_action" / "wider_environment.py").read_text()
    assert '[python, "-I", "-X", "utf8", str(_BOOTSTRAP), "run"]' in wider
    source = (ROOT / "action" / "bootstrap.py").read_text()
    assert '[str(python), *ISOLATED, str(Path(__file__).resolve()), "act"]' in source
    assert "os.execve(python, action, our_own({**environment, **variables}))" in source
    lines = [
        line for line in (ROOT / "action.yml").read_text().splitlines() if "bootstrap.py" in line
    ]
    assert len(lines) == 3
    assert all(""" "$PY" -I """ in f" {line}" or '"${PY:-false}" -I ' in line for line in lines)


def test_a_library_is_loaded_at_few_places_and_from_where_we_built_it() -> None:
    """Code that reads a model loads no library for it but one that the base's configuration names
    by its digest, and no compiled code but what the compiler child wrote, for the process that
    measures it."""
    found = {(name_of(path), name) for path, nodes in telling_nodes() for name in loads(nodes)}
    assert found == LOADERS


def loads(nodes: Nodes) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in LOADING:
            yield node.attr


@functools.cache
def telling_nodes() -> list[tuple[Path, Nodes]]:
    """The imports and attributes of each file of the product."""
    return [
        (path, [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, KINDS)])
        for part in ("action", "plugin", "cache")
        for path in (ROOT / part).rglob("*.py")
        if not {"tests", "examples"} & {*path.relative_to(ROOT).parts}  # those of extras
    ]


def starts(nodes: Nodes) -> Iterator[str]:
    """Yields the names that start a process, or say which Python to start."""
    for node in nodes:
        name = dotted(node)
        module, _, attribute = name.partition(".")
        if (
            name == "sys.executable"
            or (module == "subprocess" and attribute and attribute not in OF_SUBPROCESS)
            or (module == "os" and attribute.startswith(STARTING))
        ):
            yield name


def dotted(node: ast.AST) -> str:
    match node:
        case ast.Attribute(value=ast.Name(id=module), attr=attribute):
            return f"{module}.{attribute}"
        case _:
            return ""


def modules(nodes: Nodes) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]
