"""The cause where a compile child gave no answer: the model, the configuration, the machine."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tunegate.edges.processes.child import ChildDiedError
from tunegate.engine.protocol import Failed
from tunegate.errors import ConfigError, EnvironmentUnfitError, ModelError, UnsupportedModelError
from tunegate.runtimes.tvm.compiler_self_test import compiler_failure


class CompileFailures:
    """`log` is what the children wrote."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._is_known_to_work = False

    def of(self, path: str, reply: msgspec.Struct | ChildDiedError) -> ModelError:
        """The error of the model. Raises ConfigError or EnvironmentUnfitError where it is none of
        the model's."""
        if isinstance(reply, Failed) and reply.model:
            return (UnsupportedModelError if reply.compiler else ModelError)(reply.reason)
        if isinstance(reply, Failed):
            raise (ConfigError if reply.configuration else EnvironmentUnfitError)(reply.reason)
        self._require_working_compiler()
        return UnsupportedModelError(
            f"{path}: the compiler {reply} on this model (log: {self._log})."
        )

    def _require_working_compiler(self) -> None:
        """Raises unless the compiler works: one that dies of every model says nothing about this
        one."""
        failure = "" if self._is_known_to_work else compiler_failure()
        if failure:
            message = (
                f"the compiler does not work on this machine ({failure}). Run tunegate doctor."
            )
            raise EnvironmentUnfitError(message)
        self._is_known_to_work = True
