"""Small wheels, the real uv as a wheel, and a package index on loopback."""

import base64
import hashlib
import sys
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

UV_VERSION = "0.13.9"


def small_wheel(
    directory: Path,
    name: str = "tinydep",
    text: str = "VALUE = 1\n",
    version: str = "1.0",
    needs: Sequence[str] = (),
) -> Path:
    """A wheel with one module, which needs other packages."""
    return _wheel(directory, name, version, {f"{name}.py": text.encode()}, needs)


def uv_wheel(directory: Path) -> Path:
    """The uv of this environment, packed again."""
    found = Path(sys.executable).with_name("uv")
    program = f"uv-{UV_VERSION}.data/scripts/uv"
    return _wheel(directory, "uv", UV_VERSION, {program: found.read_bytes()})


def locked(*wheels: Path) -> str:
    """Lines of a lock that wants exactly these."""
    lines = []
    for wheel in wheels:
        name, version, *_ = wheel.name.split("-")
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        lines.append(f"{name}=={version} --hash=sha256:{digest}\n")
    return "".join(lines)


class Index(ThreadingHTTPServer):
    """Serves wheels as the simple API does, and notes who asked for which. It takes
    `seconds` for each wheel whose name is in `slow`."""

    daemon_threads = True

    def __init__(self, wheels: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.wheels = wheels
        self.asked: list[tuple[str, str]] = []
        self.slow: Mapping[str, float] = {}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/simple"

    def clients_of(self, name: str) -> set[str]:
        """The programs that took the wheel."""
        return {agent.partition("/")[0] for agent, wheel in self.asked if wheel == name}


@contextmanager
def serving_packages(wheels: Path) -> Iterator[Index]:
    with Index(wheels) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        _, kind, name, *_ = [*self.path.split("/"), ""]
        if kind == "simple":
            found = self.server.wheels.glob(f"{name}-*.whl")
            links = "".join(f'<a href="/files/{each.name}">{each.name}</a>' for each in found)
            self._send(f"<!DOCTYPE html><html><body>{links}</body></html>".encode(), "text/html")
            return
        package = name.partition("-")[0]
        self.server.asked.append((self.headers.get("User-Agent", ""), package))
        time.sleep(self.server.slow.get(package, 0))
        self._send((self.server.wheels / name).read_bytes(), "application/octet-stream")

    def do_HEAD(self) -> None:
        self._send((self.server.wheels / self.path.split("/")[2]).read_bytes(), "")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- its own name
        """Says nothing."""


def _wheel(
    directory: Path, name: str, version: str, files: Mapping[str, bytes], needs: Sequence[str] = ()
) -> Path:
    wheel = directory / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    required = "".join(f"Requires-Dist: {each}\n" for each in needs)
    said = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    contents = {**files, **{path: text.encode() for path, text in said.items()}}
    record = "".join(f"{path},{_digest(body)},{len(body)}\n" for path, body in contents.items())
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, body in contents.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = 0o100755 << 16
            archive.writestr(entry, body)
        archive.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
    return wheel


def _digest(body: bytes) -> str:
    found = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).decode()
    return f"sha256={found.rstrip('=')}"
