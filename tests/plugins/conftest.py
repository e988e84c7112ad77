"""The tests of an example package are run where that package is installed."""

import pytest

from tests.plugins.plugin_environment import PluginEnvironment

collect_ignore_glob = ["*_example/*"]


@pytest.fixture(scope="module")
def environment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> PluginEnvironment:
    """Has the package that the file of the test calls EXAMPLE."""
    place = tmp_path_factory.mktemp("environment") / "e"
    return PluginEnvironment(place, request.module.EXAMPLE.name)
