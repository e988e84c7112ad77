"""What befalls listings only, by name."""

from __future__ import annotations

import re
import secrets

from tests.support.servers.fault_proxy import Answer, Exchange, Fault

_CONTENTS = re.compile(rb"<Contents>.*?</Contents>", re.DOTALL)


def empty_listing(exchange: Exchange) -> None:
    _send_listing(exchange, _CONTENTS.sub(b"", exchange.forward().body))


def unsorted_listing(exchange: Exchange) -> None:
    listing = exchange.forward().body
    entries = iter(reversed(_CONTENTS.findall(listing)))
    _send_listing(exchange, _CONTENTS.sub(lambda _: next(entries), listing))


def repeated_page(exchange: Exchange) -> None:
    """The first page is sent twice; then the listing goes on."""
    target, again = exchange.request.target, "continuation-token=again-"
    if again in target:
        exchange.send(_page(exchange, target.replace(again, "continuation-token=")))
    elif "continuation-token=" in target:
        first = re.sub(r"&?continuation-token=[^&]*", "", target)
        _send_listing(exchange, _with_token(_page(exchange, first).body, b"again-"))
    else:
        exchange.send(_page(exchange, target))


def same_page_for_ever(exchange: Exchange) -> None:
    first = re.sub(r"&?continuation-token=[^&]*", "", exchange.request.target)
    _send_listing(exchange, _page(exchange, first).body)


def pages_without_end(exchange: Exchange) -> None:
    """Answers with pages as above, but each page seems to lead to another."""
    first = re.sub(r"&?continuation-token=[^&]*", "", exchange.request.target)
    page = _with_token(_page(exchange, first).body, secrets.token_hex(8).encode())
    _send_listing(exchange, page)


def _page(exchange: Exchange, target: str) -> Answer:
    """A listing of one name."""
    return exchange.forward(target=f"{target}&max-keys=1")


def _with_token(page: bytes, mark: bytes) -> bytes:
    opening = b"<NextContinuationToken>"
    return page.replace(opening, opening + mark)


def _send_listing(exchange: Exchange, listing: bytes) -> None:
    exchange.send(Answer(200, {"content-type": "application/xml"}, listing))


LISTING_FAULTS: dict[str, Fault] = {
    "empty listing": empty_listing,
    "unsorted listing": unsorted_listing,
    "repeated page": repeated_page,
    "same page for ever": same_page_for_ever,
    "pages without end": pages_without_end,
}
