"""The child of a search whose models may be in parts: the compiler's own, for more models."""

from __future__ import annotations

from tunegate.compiler.searcher import Searcher
from tunegate.tune.protocol import SearchReply, SearchRequest
from tunegate_hybrid.opening import opened_in_parts

Request = SearchRequest

_searcher = Searcher(lambda *model: opened_in_parts(*model).functions)


def handle_request(request: SearchRequest) -> SearchReply:
    """Serve one request of the coordinator."""
    return _searcher.handle_request(request)
