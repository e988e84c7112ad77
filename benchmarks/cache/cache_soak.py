"""Eight processes on one bucket of a real server, killed at random, for ten minutes.

    python -m benchmarks.cache.cache_soak [--minutes 10] [--seed 1] [--server moto|ceph]

Prints the table of docs/benchmarks.
"""

from __future__ import annotations

import os

from tests.support.servers.cache_soak import soak
from tests.support.servers.ceph import ceph_gateway
from tests.support.servers.moto_server import CREDENTIALS, moto_server

from benchmarks.kit.command import Choice, command_line, scratch_folder
from benchmarks.kit.tables import heading


def main() -> None:
    options = command_line(__doc__, minutes=10.0, seed=1, server=Choice(("moto", "ceph"), "moto"))
    os.environ.update(CREDENTIALS)
    server = moto_server if options.server == "moto" else ceph_gateway
    with server() as url, scratch_folder() as folder:
        done = soak(url, folder, seconds=60 * options.minutes, seed=options.seed)
    heading("server | minutes | kills | compactions | acknowledged | lost | reads | read gaps")
    print(
        f"| {options.server} | {options.minutes:g} | {done.kills} | {done.compactions} | "
        f"{done.acknowledged} | {done.acknowledged - done.visible} | {done.reads} | {done.gaps} |"
    )


if __name__ == "__main__":
    main()
