"""The child processes of this compiler that the engine drives."""

from __future__ import annotations

from tunegate.engine.programs import Programs

PROGRAMS = Programs(
    searcher="tunegate.edges.metaschedule.searcher", worker="tunegate.edges.metaschedule.worker"
)
