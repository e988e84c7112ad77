"""The check whether something else kept the machine busy while it measured."""

from __future__ import annotations

from collections.abc import Mapping

from tunegate.plurals import plural

_OWN_LOAD = 1.0
"""The load that measuring itself adds beyond the cores: the sides take turns."""


def busy_words(environment: Mapping[str, str]) -> str:
    """Such as `a quieter runner (the load was 13.7 on 2 cores)`, where it was too high. Facts that
    are missing or no numbers say nothing."""
    quieter = "a quieter runner"
    try:
        load = float(environment["load average"].split()[0])
        cores = int(environment["cores"])
    except (KeyError, IndexError, ValueError):
        return quieter
    if load < cores + _OWN_LOAD:
        return quieter
    return f"{quieter} (the load was {load:.1f} on {plural(cores, 'core')})"
