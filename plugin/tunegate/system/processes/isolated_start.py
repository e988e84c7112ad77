"""The first lines of every Python that we start: `isolated_start.py SEARCH-PATH MODULE
ARGUMENT...`.

It imports from exactly where its parent does. Standard library only; see interpreter.py.
"""

import json
import runpy
import sys

if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[1])
    del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
