"""Eight processes on one bucket of a real server, killed at random, for ten minutes.

    python benchmarks/cache_soak.py [--minutes 10] [--seed 1] [--server moto|ceph]

Prints the table of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from tests.support.servers.cache_soak import soak
from tests.support.servers.ceph import ceph_gateway
from tests.support.servers.moto_server import CREDENTIALS, moto_server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server", choices=("moto", "ceph"), default="moto")
    options = parser.parse_args()
    os.environ.update(CREDENTIALS)
    server = moto_server if options.server == "moto" else ceph_gateway
    with server() as url, tempfile.TemporaryDirectory() as folder:
        done = soak(url, Path(folder), seconds=60 * options.minutes, seed=options.seed)
    print("| server | minutes | kills | compactions | acknowledged | lost | reads | read gaps |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    print(
        f"| {options.server} | {options.minutes:g} | {done.kills} | {done.compactions} | "
        f"{done.acknowledged} | {done.acknowledged - done.visible} | {done.reads} | {done.gaps} |"
    )


if __name__ == "__main__":
    main()
