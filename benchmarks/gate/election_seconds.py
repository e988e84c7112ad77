"""Times the election of a model that nobody has elected before.

    python -m benchmarks.gate.election_seconds DIRECTORY [--models ppocr_v2_cls ...]
        [--accuracy "{max-error: 5}"] [--threads 1] [--save NAME --merge]

Collects the models as `init_to_gate.py` does. Each is added to a repository of its own, whose
configuration has the budget of accuracy, so that all precisions compete, and is run without tuning.
Prints what ships, the candidates that have a time, the seconds of the election, and those of the
whole run, which builds the candidates before.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.kit.collected import collected
from benchmarks.kit.command import command_line
from benchmarks.kit.tables import heading, row
from benchmarks.real_models.init_to_gate import Repository


def main() -> None:
    options = command_line(
        __doc__, ("directory", Path), models=[""], accuracy="{max-error: 5}", threads=1
    )
    models = collected(options.directory)
    heading("model | ships | candidates timed | election, s | whole run, s", words=(0, 1))
    for name, model in models.items():
        if name in options.models or options.models == [""]:
            repository = Repository(model, options.threads)
            repository.begin(model, options.accuracy)
            run = repository.run("main", 0)
            election = "–" if run.choosing_seconds is None else f"{run.choosing_seconds:.0f}"
            ships = run.runtime or run.said[:80]
            row(name, ships, len(run.times), election, f"{run.seconds:.0f}")


if __name__ == "__main__":
    main()
