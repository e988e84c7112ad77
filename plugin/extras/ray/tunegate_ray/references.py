"""The outputs of default schedules, for the workers of all nodes."""

from __future__ import annotations

from typing import Any

from tunegate.tune.protocol import Measure
from tunegate_ray.door import Ray


class References:
    """Each is stored once in the cluster, and fetched once by every node that needs it."""

    def __init__(self, ray: Ray) -> None:
        self._ray = ray
        self._stored: dict[str, Any] = {}

    def keep(self, request: Measure, reference: bytes) -> None:
        self._stored[request.reference] = self._ray.put(reference)

    def of(self, request: Measure) -> Any:
        """Returns the reference, empty if it is not known yet: the candidate is then not
        compared."""
        return self._stored.get(request.reference, b"")
