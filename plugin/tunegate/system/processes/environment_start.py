"""The first lines of a Python of another environment: `environment_start.py SEARCH-PATH MODULE
ARGUMENT...`.

Packages installed there come first, but tunegate's own code is its parent's. Standard library only;
see interpreter.py.
"""

import importlib
import json
import runpy
import sys

_OURS = ("tunegate", "tunegate_cache", "msgspec")

if __name__ == "__main__":
    own, parents = list(sys.path), json.loads(sys.argv[1])
    sys.path[:] = parents
    for name in _OURS:
        importlib.import_module(name)
    sys.path[:] = [*own, *(entry for entry in parents if entry not in own)]
    del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
