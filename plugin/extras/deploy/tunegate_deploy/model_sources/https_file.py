"""A model at an `https://` address. Its data files are beside it, under the same query."""

from __future__ import annotations

import base64
import netrc
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import SplitResult, quote, unquote

from tunegate_deploy.model_sources.addressed_model import AddressedModel
from tunegate_deploy.model_sources.download_limits import ByteCount
from tunegate_deploy.model_sources.model_files import bring_model
from tunegate_deploy.model_sources.source_settings import SourceSettings
from tunegate_deploy.model_sources.web import (
    WebRequest,
    require_success,
    require_web_address,
    shown_url,
    web_answer,
)

_PLAIN_NAME = re.compile(r"\w[\w.+@=-]{0,199}")
_NAMELESS = "model.onnx"


class HttpsFile:
    """One file and its data files. Credentials come from ~/.netrc."""

    def __init__(self, url: str, settings: SourceSettings) -> None:
        """Raises ConfigError for a forbidden address."""
        self._parts = require_web_address(url)

    @property
    def address(self) -> str:
        return shown_url(self._parts.geturl())

    def resolve(self) -> str:
        """Returns no version: only its content pins a file."""
        return ""

    def download(self, into: Path, count: ByteCount) -> Path:
        path = PurePosixPath(unquote(self._parts.path))
        name = path.name if _PLAIN_NAME.fullmatch(path.name) else _NAMELESS

        def read(path: str) -> Iterator[bytes]:
            here = self._parts.path
            if path != name:
                here = f"{here.rpartition('/')[0]}/{quote(path)}"
            return self._pieces(self._parts._replace(path=here))

        return bring_model(name, into, read, count)

    def _pieces(self, parts: SplitResult) -> Iterator[bytes]:
        headers = _credentials(parts.hostname or "")
        with web_answer(WebRequest(url=parts.geturl(), headers=headers)) as answer:
            require_success(answer, shown_url(parts.geturl()))
            yield from answer.pieces()


def _credentials(host: str) -> dict[str, str]:
    """Returns the header that ~/.netrc gives for the host, as with curl and pip."""
    try:
        found = netrc.netrc().authenticators(host)
    except (OSError, netrc.NetrcParseError):
        found = None
    if found is None:
        return {}
    user, _, password = found
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}


_: type[AddressedModel] = HttpsFile
