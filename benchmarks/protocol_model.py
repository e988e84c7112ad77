"""Every interleaving of the cache's protocol, with more processes than the tests have.

    python benchmarks/protocol_model.py

Prints the table of docs/benchmarks.md.
"""

from __future__ import annotations

import time

from tests.protocol.model import Bounds, Variant, explore

LARGE = Bounds(writers=3, compactors=2, rounds=1)
TWICE = Bounds(writers=2, compactors=2, rounds=2)
VARIANTS = {
    "as it is": Variant(),
    "as it is, conditions of the store do not work": Variant(atomic_swap=False),
    "HEAD is read before segments are listed": Variant(reads="head, list"),
    "a compaction deletes what it gathered": Variant(collects="inputs"),
    "no adoption": Variant(adopts=False),
    "no adoption, conditions do not work": Variant(atomic_swap=False, adopts=False),
}


def main() -> None:
    print(
        "| protocol | writers, rounds | states | seconds | promises | shortest way to break them |"
    )
    print("|---|---|--:|--:|---|--:|")
    for name, variant in VARIANTS.items():
        for bounds in (LARGE, TWICE):
            started = time.monotonic()
            found = explore(variant, bounds, most_states=20_000_000)
            seconds = time.monotonic() - started
            print(
                f"| {name} | {bounds.writers}, {bounds.rounds} | {found.states:,} | {seconds:.0f} | "
                f"{found.violation or 'kept'} | {len(found.trace) or ''} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
