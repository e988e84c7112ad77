"""The cache for one tuner: gets the newest content under a key, puts content, lists.

Store trouble is a miss: nothing here raises it, and nobody waits longer than the limits. Content
counts only from trusted zones, if it matches its name and, in a zone with keys, is signed by one.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import TypeVar

from tunegate_cache.format.cache_statistics import CacheStatistics
from tunegate_cache.format.segment import append_signature, signature_of, without_signature
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.protocol.trust import Trust
from tunegate_cache.stores.circuit_breaking_store import Breaker, CircuitBreakingStore
from tunegate_cache.stores.gather_with_deadline import gather_with_deadline
from tunegate_cache.stores.store import ObjectStore
from tunegate_tuners.lent_objects import LentObject, Tool, lent_objects, name_part, tool_prefix

READ_SECONDS, WRITE_SECONDS = 5.0, 10.0
MAX_CONTENT_BYTES = 32 * 2**20
MAX_CLOCK_SKEW_MS = 600_000
_TRIES = 3
"""The newest objects of a place that are read until one can be trusted."""

_log = logging.getLogger("tunegate.tuners")
_T = TypeVar("_T")


class Bucket:
    """The cache as one tuner sees it. With `zone` None nothing is written."""

    def __init__(
        self,
        store: ObjectStore,
        tool: Tool,
        *,
        zone: str | None,
        read_zones: Sequence[str],
        trust: Trust,
        seconds: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._statistics = CacheStatistics()
        self._store = CircuitBreakingStore(store, self._statistics, monotonic)
        self._tool, self._zone, self._read_zones = tool, zone, tuple(dict.fromkeys(read_zones))
        self._trust = trust
        self._seconds, self._monotonic = seconds, monotonic
        self._answers = Breaker(monotonic)
        self._told: set[str] = set()

    def get(self, key: str, files: Collection[str]) -> dict[str, bytes]:
        """Returns the newest trusted content of each file under the key, without files that are
        missing or late."""
        deadline = self._monotonic() + READ_SECONDS
        wanted = {name_part(file): file for file in files}
        found = self._list_objects(f"{name_part(key)}/", deadline)
        contents = self._newest(
            (each for each in found if each.key == name_part(key) and each.file in wanted), deadline
        )
        return {wanted[each.file]: content for each, content in contents.items()}

    def recent(self, limit: int) -> dict[tuple[str, str], bytes]:
        """Returns the newest trusted content of all places of this tuner, latest first, by parts of
        their names: key and file."""
        deadline = self._monotonic() + READ_SECONDS
        latest = sorted(
            self._list_objects("", deadline), key=lambda each: each.milliseconds, reverse=True
        )
        places = list(dict.fromkeys((each.key, each.file) for each in latest))[:limit]
        wanted = set(places)
        contents = self._newest(
            (each for each in latest if (each.key, each.file) in wanted), deadline
        )
        by_place = {(each.key, each.file): content for each, content in contents.items()}
        return {place: by_place[place] for place in places if place in by_place}

    def put(self, key: str, file: str, content: bytes) -> None:
        """Writes the content beside existing ones, as the newest."""
        self.put_all(key, {file: content})

    def put_all(self, key: str, contents: Mapping[str, bytes]) -> None:
        """Writes the content of each file under a key."""
        if self._zone is None:
            return
        requests: dict[str, Callable[[], None]] = {}
        for file, content in contents.items():
            if len(content) > MAX_CONTENT_BYTES:
                self._log_once(
                    f"{file} is larger than {MAX_CONTENT_BYTES >> 20} MiB and not stored"
                )
                continue
            name = LentObject(
                zone=self._zone,
                tool=self._tool,
                key=name_part(key),
                file=name_part(file),
                milliseconds=int(self._seconds() * 1000),
                size=len(content),
                digest=hashlib.sha256(content).hexdigest(),
            )
            requests[name.name] = partial(self._store.write, name.name, self._sign(name, content))
        self._ask(requests, self._monotonic() + WRITE_SECONDS)

    def _sign(self, name: LentObject, content: bytes) -> bytes:
        if self._trust.signer is None:
            return content
        return append_signature(content, self._trust.signer.sign(name.name, name.digest))

    def _list_objects(self, below: str, deadline: float) -> list[LentObject]:
        """Returns this tuner's objects in trusted zones, none from the future."""
        prefixes = {zone: f"{tool_prefix(zone, self._tool)}{below}" for zone in self._read_zones}
        listings = self._ask(
            {zone: partial(self._store.names, prefix) for zone, prefix in prefixes.items()},
            deadline,
        )
        latest = self._seconds() * 1000 + MAX_CLOCK_SKEW_MS
        return [
            each
            for zone, names in listings.items()
            for each in lent_objects(names)
            if (each.zone, each.tool) == (zone, self._tool)
            and each.milliseconds <= latest
            and each.size <= MAX_CONTENT_BYTES
        ]

    def _newest(self, objects: Iterable[LentObject], deadline: float) -> dict[LentObject, bytes]:
        """Returns the content of the newest trustworthy object of each key and file."""
        places = [
            sorted(group, key=lambda each: each.milliseconds)[-_TRIES:]
            for _, group in groupby(
                sorted(objects, key=lambda each: (each.key, each.file)),
                key=lambda each: (each.key, each.file),
            )
        ]
        contents: dict[LentObject, bytes] = {}
        while places:
            asked = {place[-1].name: place.pop() for place in places}
            bodies = self._ask({name: partial(self._store.read, name) for name in asked}, deadline)
            trusted = {
                each: without_signature(body)
                for name, body in bodies.items()
                if self._is_trusted(each := asked[name], body)
            }
            contents |= trusted
            done = {(each.key, each.file) for each in trusted}
            places = [
                place for place in places if place and (place[-1].key, place[-1].file) not in done
            ]
        return contents

    def _is_trusted(self, name: LentObject, body: bytes) -> bool:
        problem = distrust(name, body, self._trust.keys)
        if problem:
            self._log_once(f"{name.name} {problem}")
        return not problem

    def _ask(self, requests: Mapping[str, Callable[[], _T]], deadline: float) -> dict[str, _T]:
        """Returns the answers that came in time. A store that leaves requests unanswered is
        paused."""
        ticket = self._answers.admit() if requests else None
        if ticket is None:
            return {}
        answers = dict(gather_with_deadline(requests, deadline=deadline, monotonic=self._monotonic))
        is_late = len(answers) < len(requests)
        self._answers.record(ticket, "timed out" if is_late else "answered")
        if is_late:
            self._log_once("the cache does not answer in time")
        for note in self._statistics.notes:
            self._log_once(note)
        return {name: each for name, each in answers.items() if not isinstance(each, Exception)}

    def _log_once(self, problem: str) -> None:
        """Logs each problem once: more kernels should not mean more lines."""
        if problem not in self._told:
            self._told.add(problem)
            _log.warning("tunegate: %s", problem)


def distrust(name: LentObject, body: bytes, keys: TrustedKeys) -> str:
    """Returns why no reader takes an object, '' if one does."""
    content = without_signature(body)
    if len(content) != name.size or hashlib.sha256(content).hexdigest() != name.digest:
        return "is not what its name says"
    if not keys.accepts(name.zone, name.name, name.digest, signature_of(body)):
        return f"is not signed by a key that zone {name.zone} trusts"
    return ""
