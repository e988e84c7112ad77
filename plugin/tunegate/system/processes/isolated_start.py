"""The first lines of every Python that we start: `isolated_start.py SEARCH-PATH MODULE
ARGUMENT...`.

It imports from exactly where its parent does. After `--environment`, in the Python of another
environment, packages installed there come first, but tunegate's own code is its parent's. Standard
library only; see interpreter.py.
"""

import importlib
import json
import runpy
import sys

_ENVIRONMENT = "--environment"
_OURS = ("tunegate", "tunegate_cache", "msgspec")

if __name__ == "__main__":
    is_environment = sys.argv[1] == _ENVIRONMENT
    del sys.argv[: 2 if is_environment else 1]
    own, parents = list(sys.path), json.loads(sys.argv[0])
    sys.path[:] = parents
    if is_environment:
        for name in _OURS:
            importlib.import_module(name)
        sys.path[:] = [*own, *(entry for entry in parents if entry not in own)]
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
