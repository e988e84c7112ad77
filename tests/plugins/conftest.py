"""The tests of an example package are run where that package is installed."""

collect_ignore_glob = ["*_example/*"]
