"""The child that holds the models, search spaces and surrogates of one tuning run."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tunegate.compiler.build.functions import ModelFunction
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.opening import opened_model
from tunegate.compiler.search.search import TaskSearch
from tunegate.compiler.search.workload import Workload
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.errors import TunegateError
from tunegate.tune import protocol
from tunegate.tune.prior import Prior, prior_of

Request = protocol.SearchRequest


ModelFunctions = Callable[[protocol.ModelFile, TargetConfig, Path], Sequence[ModelFunction]]
"""Returns the kernels of a model to tune. Raises ModelError."""


class Searcher:
    """Serves the requests of one tuning run, for the kernels that `functions_of` finds in its
    models."""

    def __init__(self, functions_of: ModelFunctions) -> None:
        self._functions_of = functions_of
        self._seed = 1
        self._filters = True
        self._prior: Prior | None = None
        self._first_number = 1
        self._target: object = None
        self._workloads: dict[str, Workload] = {}
        self._searches: dict[str, TaskSearch] = {}

    def handle_request(self, request: protocol.SearchRequest) -> protocol.SearchReply:
        """Serves one request of the coordinator."""
        match request:
            case protocol.OpenModels():
                return self._open(request)
            case protocol.Propose():
                return self._propose(request)

    def _open(self, request: protocol.OpenModels) -> protocol.SearchReply:
        load_intrinsics(request.target.kind)
        target = tvm_target(request.target)
        self._target, self._seed = target.target, request.seed
        self._filters, self._first_number = request.filters, request.first_number
        self._prior = prior_of(request.target.kind) if request.filters else None
        for number, model in enumerate(request.models):
            into = Path(request.directory) / f"model-{number}"
            try:
                functions = self._functions_of(model, request.target, into)
            except TunegateError as error:
                return protocol.Failed(str(error), model=True)
            for function in functions:
                self._workloads.setdefault(function.workload.digest, function.workload)
        return protocol.Opened(tuple(self._workloads), target.export_json())

    def _propose(self, request: protocol.Propose) -> protocol.SearchReply:
        start = time.monotonic()
        search = self._search_of(request.workload)
        search.remember(request.known)
        search.learn(request.results)
        search.avoid(request.failed)
        proposal: protocol.Proposed = search.propose(request.count, request.seeds)
        seconds, sketches = time.monotonic() - start, search.space.sketches()
        return msgspec.structs.replace(proposal, seconds=seconds, sketches=sketches)

    def _search_of(self, workload: str) -> TaskSearch:
        if workload not in self._searches:
            self._searches[workload] = TaskSearch(
                self._workloads[workload],
                self._target,
                seed=self._seed,
                filters=self._filters,
                prior=self._prior,
                first_number=self._first_number,
            )
        return self._searches[workload]


_searcher = Searcher(lambda *model: opened_model(*model).functions)


def handle_request(request: protocol.SearchRequest) -> protocol.SearchReply:
    """Serves one request of the coordinator."""
    return _searcher.handle_request(request)
