"""A server with a certificate that no authority of this machine signed."""

import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path


@contextmanager
def own_authority(directory: Path) -> Iterator[str]:
    """The URL of the server; its certificate and key are made in `directory`."""
    key, certificate = directory / "key.pem", directory / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-keyout", str(key), "-out", str(certificate)),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with _Server(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"https://localhost:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Server(HTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that hangs up on the certificate is what the tests are about."""
