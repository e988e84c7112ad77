"""The surroundings of every test: nobody's home, nobody's credentials, nobody's CI job."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from tests.cuda_stand_in.fixtures import cuda_stand_in, cuda_stand_in_libraries
from tests.support import durations
from tests.support.golden import Golden
from tests.support.servers.moto_server import BUCKET, CREDENTIALS, moto_server
from tests.support.simulated.simulated_gpus import simulate
from tests.support.skips import pytest_runtest_makereport, pytest_terminal_summary

from tunegate_cache.stores.s3 import S3Store

__all__ = [
    "cuda_stand_in",
    "cuda_stand_in_libraries",
    "pytest_runtest_makereport",
    "pytest_terminal_summary",
    "simulate",
]

_prefixes = itertools.count()

# `make test` and `make test-all` are the same in every run; `make fuzz` looks for new examples.
settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.register_profile("quick", settings.get_profile("repeatable"), max_examples=20)
settings.register_profile("fuzz", max_examples=2_000, deadline=None, print_blob=True)
settings.load_profile("repeatable")

FOREIGN = (
    *("AWS_", "GITHUB_", "RUNNER_", "CI_", "TUNEGATE_", "XDG_", "BUILDKITE", "GITLAB_"),
    *("CIRCLE", "BITBUCKET_", "BUILD_", "SYSTEM_", "TF_BUILD", "JENKINS_", "CHANGE_"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite tests/golden/ from what is rendered"
    )
    parser.addoption("--shard", metavar="K/N", help="run the K-th of N parts of the tests")


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    recorded = durations.load()
    durations.mark_slow(items, recorded)
    if chosen := config.getoption("--shard"):
        number, count = (int(part) for part in str(chosen).split("/"))
        mine = durations.shard((each.nodeid for each in items), number, count, recorded)
        config.hook.pytest_deselected(items=[each for each in items if each.nodeid not in mine])
        items[:] = [each for each in items if each.nodeid in mine]


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A part of the tests may have none that the other options select."""
    if session.config.getoption("--shard") and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


def pytest_configure(config: pytest.Config) -> None:
    """Tests beside each other have cores of their own: what one measures,
    the other does not disturb. Only the workers beyond the number of cores have all of them.
    TVM stays on them too, as in the processes of the product: it would move who runs a kernel to
    the first core of the machine, and all that is started later.

    Bytecode is kept, whatever the machine says: the tests start a thousand Pythons, and each would
    compile all that it imports, which takes half of its time."""
    if config.getoption("--hypothesis-profile") != "fuzz":
        draw_no_constants_of_loaded_modules()
    os.environ["TVM_BIND_THREADS"] = "0"
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        cores = sorted(os.sched_getaffinity(0))
        number = int(str(worker["workerid"]).removeprefix("gw"))
        os.sched_setaffinity(0, cores[number :: int(worker["workercount"])] or cores)


def draw_no_constants_of_loaded_modules() -> None:
    """Hypothesis draws texts and numbers that stand in our modules, of those that are loaded. Which
    they are hangs on the tests that ran before in the same worker, so that a run would not repeat
    the one before it."""
    assert callable(providers._get_local_constants)
    providers._get_local_constants = lambda: providers._local_constants  # of none


@pytest.fixture
def golden(pytestconfig: pytest.Config) -> Golden:
    return Golden(bool(pytestconfig.getoption("--update-golden")))


@pytest.fixture(autouse=True)
def nobodys_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """An empty home, and no cloud or CI settings of the machine the tests run on. What a test, or
    what it loads (TVM's runtime), sets for its process ends with it."""
    before, cores = dict(os.environ), os.sched_getaffinity(0)
    for name in list(os.environ):
        if name == "CI" or name.startswith(FOREIGN):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    yield
    for name in set(os.environ) - set(before):
        del os.environ[name]
    os.environ.update(before)
    os.sched_setaffinity(0, cores)


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """The address of an S3 server with the bucket `tuning`: one for all tests."""
    with moto_server() as url:
        yield url


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch, nobodys_machine: None) -> None:
    """Accepted by that server."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def bucket(endpoint: str, credentials: None) -> S3Store:
    """An empty prefix of a bucket on a real server."""
    prefix = f"test-{next(_prefixes)}"
    return S3Store(BUCKET, prefix, endpoint_url=endpoint, region="us-east-1")
