"""Every interleaving of the cache's protocol, with more processes than the tests have.

    python -m benchmarks.cache.protocol_model

Prints the table of docs/benchmarks.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.protocol.model import Bounds, Variant, World, explore
from tests.protocol.symmetry import representative

from benchmarks.kit.command import command_line
from benchmarks.kit.tables import heading

BOUNDS = {
    "2 writers, 2 compactors, collector, reader": Bounds(writers=2, compactors=2),
    "3 writers, 2 compactors, collector": Bounds(writers=3, compactors=2, readers=0),
    "3 writers, compactor, collector, reader": Bounds(writers=3, compactors=1),
    "2 writers, 2 compactors twice, collector": Bounds(
        writers=2, compactors=2, rounds=2, readers=0
    ),
}
ALL_AT_ONCE = Bounds(writers=3, compactors=2)
"""Has more states than fit into 20 GB, unless those that differ in who is who are taken for one."""
VARIANTS = {
    "as it is": Variant(),
    "as it is, conditions of the store do not work": Variant(atomic_swap=False),
    "HEAD is read before segments are listed": Variant(reads="head, list"),
    "a compaction deletes what it gathered": Variant(collects="inputs"),
    "no recovery": Variant(recovers=False),
    "no recovery, conditions do not work": Variant(atomic_swap=False, recovers=False),
}


def main() -> None:
    command_line(__doc__)
    heading(
        "protocol | processes | states | seconds | promises | steps to break them", words=(0, 1, 4)
    )
    for name, variant in VARIANTS.items():
        for processes, bounds in BOUNDS.items():
            if bounds.readers or variant.reads == Variant().reads:
                show(name, variant, processes, bounds, same=lambda world: world)
    for name, variant in VARIANTS.items():
        processes = "3 writers, 2 compactors, collector, reader, who is who aside"
        show(name, variant, processes, ALL_AT_ONCE, same=representative)


def show(
    name: str,
    variant: Variant,
    processes: str,
    bounds: Bounds,
    *,
    same: Callable[[World], World],
) -> None:
    started = time.monotonic()
    found = explore(variant, bounds, most_states=12_000_000, representative=same)
    seconds = time.monotonic() - started
    print(
        f"| {name} | {processes} | {found.states:,} | {seconds:.0f} | "
        f"{found.violation or 'kept'} | {len(found.trace) or ''} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
