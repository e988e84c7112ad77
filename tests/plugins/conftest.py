"""The tests of an example package are run where that package is installed."""

from __future__ import annotations

collect_ignore_glob = ["*_example/*"]
