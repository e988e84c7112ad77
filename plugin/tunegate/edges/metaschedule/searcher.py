"""The child that holds the models, the search spaces and the surrogates of one tuning run."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from tunegate.cost_model.prior import Prior, prior_of
from tunegate.edges.metaschedule.intrinsics import load_intrinsics
from tunegate.edges.metaschedule.parts.opening import opened_model
from tunegate.edges.metaschedule.search import TaskSearch
from tunegate.edges.metaschedule.targets import tvm_target
from tunegate.edges.metaschedule.workload import Workload
from tunegate.engine.protocol import (
    Failed,
    Opened,
    OpenModels,
    Propose,
    Proposed,
    SearchReply,
    SearchRequest,
)
from tunegate.errors import TunegateError

Request = SearchRequest


class _State:
    def __init__(self) -> None:
        self.seed = 1
        self.filters = True
        self.explores = False
        self.prior: Prior | None = None
        self.first_number = 1
        self.target: object = None
        self.workloads: dict[str, Workload] = {}
        self.searches: dict[str, TaskSearch] = {}


_state = _State()


def handle_request(request: SearchRequest) -> SearchReply:
    """Serve one request of the coordinator."""
    match request:
        case OpenModels():
            return _open(request)
        case Propose():
            return _propose(request)


def _open(request: OpenModels) -> SearchReply:
    load_intrinsics(request.target.kind)
    target = tvm_target(request.target)
    _state.target, _state.seed = target.target, request.seed
    _state.filters, _state.first_number = request.filters, request.first_number
    _state.explores = request.explores
    is_informed = request.filters and not request.explores
    _state.prior = prior_of(request.target.kind) if is_informed else None
    for number, model in enumerate(request.models):
        into = Path(request.directory) / f"model-{number}"
        try:
            opened = opened_model(model, request.target, into, in_parts=True)
        except TunegateError as error:
            return Failed(str(error), model=True)
        for function in opened.functions:
            _state.workloads.setdefault(function.workload.digest, function.workload)
    return Opened(tuple(_state.workloads), target.export_json())


def _propose(request: Propose) -> SearchReply:
    started = time.monotonic()
    search = _search_of(request.workload)
    search.remember(request.known)
    search.learn(request.results)
    search.avoid(request.failed)
    proposed: Proposed = search.propose(request.count, request.seeds)
    seconds, sketches = time.monotonic() - started, search.space.sketches()
    return msgspec.structs.replace(proposed, seconds=seconds, sketches=sketches)


def _search_of(workload: str) -> TaskSearch:
    if workload not in _state.searches:
        _state.searches[workload] = TaskSearch(
            _state.workloads[workload],
            _state.target,
            seed=_state.seed,
            filters=_state.filters,
            prior=_state.prior,
            first_number=_state.first_number,
            explores=_state.explores,
        )
    return _state.searches[workload]
