"""The host keeps every rule that tunegate has for one."""

import pytest
from acme_ci import AcmeHost

from tunegate_ci_hosts.conformance import HOST_RULES, SECRET, HostRule


@pytest.mark.parametrize("rule", HOST_RULES, ids=lambda rule: rule.name)
def test_the_host_keeps_the_rule(rule: HostRule) -> None:
    assert rule.problem(AcmeHost, {"ACME_TOKEN": SECRET}) == ""
