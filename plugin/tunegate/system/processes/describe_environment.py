"""Prints what is installed in an environment, as JSON. Run by that environment's Python, with names
of a runtime as arguments. Standard library only."""

import json
import re
import sys
import sysconfig
from importlib import metadata

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _requirement_names(requirements: list[str]) -> list[str]:
    """Returns the names of a package's requirements, without its extras."""
    matches = [_NAME.match(each) for each in requirements if "extra ==" not in each]
    return [_normal(match.group()) for match in matches if match]


def _describe_packages() -> dict[str, dict[str, object]]:
    packages: dict[str, dict[str, object]] = {}
    for distribution in metadata.distributions():
        if name := distribution.metadata["Name"]:
            needs = _requirement_names(distribution.requires or [])
            packages.setdefault(_normal(name), {"version": distribution.version, "needs": needs})
    return packages


if __name__ == "__main__":
    packages, modules = _describe_packages(), metadata.packages_distributions()
    owners = {
        name: [_normal(name)]
        if _normal(name) in packages
        else list(map(_normal, modules.get(name, [])))
        for name in sys.argv[1:]
    }
    description = {
        "python": f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}",
        "platform": sysconfig.get_platform(),
        "packages": packages,
        "owners": owners,
    }
    sys.stdout.write(json.dumps(description))
