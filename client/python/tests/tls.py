"""Certificates, and a gRPC server without methods that has one."""

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc


class Certificate:
    """A self-signed certificate in a folder."""

    def __init__(self, folder: Path, host: str, days: int = 1):
        key, request, certificate = (folder / f"{host}.{end}" for end in ("key", "csr", "crt"))
        make = ["openssl", "req", "-new", "-newkey", "ec", "-nodes"]
        make += ["-pkeyopt", "ec_paramgen_curve:P-256"]
        make += ["-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host},IP:127.0.0.1"]
        sign = f"openssl x509 -req -copy_extensions copy -days {days}".split()
        sign += ["-in", request, "-signkey", key, "-out", certificate]
        for command in ([*make, "-keyout", key, "-out", request], sign):
            subprocess.run(command, check=True, capture_output=True)
        self.key = key.read_bytes()
        self.certificate = certificate.read_bytes()


@contextmanager
def tls_server(certificate: Certificate, authority: bytes | None = None) -> Iterator[str]:
    pairs = [(certificate.key, certificate.certificate)]
    credentials = grpc.ssl_server_credentials(pairs, authority, authority is not None)
    server = grpc.server(ThreadPoolExecutor(1))
    # A port that is free at one address of localhost may be another program's at the other.
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield f"localhost:{port}"
    finally:
        server.stop(None)
