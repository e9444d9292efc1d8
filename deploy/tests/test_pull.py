"""Model versions from tar files, in the folder of a server that runs."""

import hashlib
import http.server
import io
import os
import shutil
import ssl
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from replicas import Replica, free_ports, wait_for
from sources import DEPLOY, REPOSITORY

MODEL = REPOSITORY / "tests/data/models/tile-xla-cpu-sage/5"
VERSION = "tile-xla-cpu-sage/5"
PROGRAM = "import sys; from hlorank_programs import command_line; command_line()"


def pull(source: str | Path, folder: Path, sha256: str = "", *options: str, **variables: str):
    """Runs the command, by default with the digest that the file has."""
    sha256 = sha256 or hashlib.sha256(Path(source).read_bytes()).hexdigest()
    command = [sys.executable, "-c", PROGRAM, "models", "pull", str(source), str(folder)]
    known = os.environ | {"PYTHONPATH": str(DEPLOY / "wheel")} | variables
    command += [f"--sha256={sha256}", *options]
    return subprocess.run(command, env=known, capture_output=True, text=True, timeout=60)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A tar file with a version."""
    file = tmp_path / "model.tar.gz"
    with tarfile.open(file, "w:gz") as tar:
        tar.add(MODEL, VERSION)
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model folder with another model."""
    shutil.copytree(REPOSITORY / "models/registry/tile-iree-cpu", tmp_path / "m/tile-iree-cpu")
    return tmp_path / "m"


def test_a_running_server_serves_what_was_pulled(model, folder, tmp_path):
    calls, metrics = free_ports(2)
    settings = {"MODELS": folder, "POLL_SECONDS": "1"}
    replica = Replica(tmp_path / "log", calls, metrics, settings)
    replica.start()
    try:
        pulled = pull(model, folder)
        assert pulled.stdout == f"published {VERSION}\n", pulled.stderr
        labels = ('model="tile-xla-cpu-sage"', 'state="serving"')
        wait_for("the model", lambda: replica.metric("hlorank_model_versions", *labels) == 1)
    finally:
        replica.process.kill()
    again = pull(model, folder)
    assert again.returncode == 1 and "exists; versions are not changed" in again.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["tile-iree-cpu", "tile-xla-cpu-sage"]


def test_a_file_comes_over_https(model, tmp_path):
    certificate = tmp_path / "tls.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    make += ["-nodes", "-days", "1", "-subj", "/CN=localhost"]
    make += [
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        certificate,
        "-out",
        "/dev/stdout",
    ]
    made = subprocess.run(make, check=True, capture_output=True)
    certificate.write_bytes(certificate.read_bytes() + made.stdout)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/elsewhere":
                self.send_response(302)
                self.send_header("location", "http://localhost/model.tar.gz")
                self.end_headers()
            else:
                super().do_GET()

    def handler(*arguments) -> Handler:
        return Handler(*arguments, directory=tmp_path)

    server = http.server.ThreadingHTTPServer(("localhost", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url, trusted = f"https://localhost:{server.server_port}", {"SSL_CERT_FILE": str(certificate)}
    sha256 = hashlib.sha256(model.read_bytes()).hexdigest()
    refused = pull(f"{url}/model.tar.gz", tmp_path / "models", sha256)
    assert refused.returncode == 1 and "CERTIFICATE_VERIFY_FAILED" in refused.stderr
    refused = pull(f"{url}/elsewhere", tmp_path / "models", sha256, **trusted)
    assert refused.returncode == 1 and "https" in refused.stderr
    refused = pull("http://localhost/model.tar.gz", tmp_path / "models", sha256)
    assert refused.returncode == 1 and "not an https:// URL" in refused.stderr
    pulled = pull(f"{url}/model.tar.gz", tmp_path / "models", sha256, **trusted)
    assert pulled.returncode == 0, pulled.stderr
    server.shutdown()
    files = {path.name: path.read_bytes() for path in MODEL.iterdir()}
    assert files == {
        path.name: path.read_bytes() for path in (tmp_path / "models" / VERSION).iterdir()
    }


def member(name: str, content: bytes = b"", **fields) -> tuple[tarfile.TarInfo, io.BytesIO]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, io.BytesIO(content)


MANIFEST = member("a/1/manifest.json", b"{}")
LINK = {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}
HARD = {"type": tarfile.LNKTYPE, "linkname": "a/1/manifest.json"}


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ([member("../a/1/manifest.json")], "not a regular file"),
        ([member("/a/1/manifest.json")], "not a regular file"),
        ([member("a/1/../../../manifest.json")], "not a regular file"),
        ([member(".pull-x/1/manifest.json")], "not a regular file"),
        ([member("a/01/manifest.json")], "not a regular file"),
        ([member("a/manifest.json")], "not a regular file"),
        ([MANIFEST, member("a/1/link", **LINK)], "not a regular file"),
        ([MANIFEST, member("a/1/link", **HARD)], "not a regular file"),
        ([MANIFEST, member("a/1/pipe", type=tarfile.FIFOTYPE)], "not a regular file"),
        ([MANIFEST, member("a/1/manifest.json", b"{}")], "File exists"),
        ([MANIFEST, member("b/1/encoder.onnx")], "b/1 has no manifest.json"),
        ([member("a/1/manifest.json/file"), MANIFEST], "File exists"),
        ([MANIFEST, *(member(f"a/1/{number}") for number in range(1000))], "more than 1000 files"),
        ([MANIFEST, member("a/1/zeros", bytes(1 << 20))], "more than 1000000 bytes"),
        ([], "no model version"),
    ],
)
def test_nothing_is_published_of_a_file_with_more_than_versions(members, reason, tmp_path):
    file = tmp_path / "bad.tar.xz"
    with tarfile.open(file, "w:xz") as tar:
        for info, content in members:
            content.seek(0)
            tar.addfile(info, content)
    refused = pull(file, tmp_path / "models", "", "--max-bytes=1000000")
    assert refused.returncode == 1 and reason in refused.stderr, refused.stderr
    assert list((tmp_path / "models").iterdir()) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: content[:-100], "end-of-stream"),
        (lambda content: content[:1000], "end-of-stream"),
        (lambda content: b"", "empty file"),
        (lambda content: b"no tar file at all", "truncated header"),
    ],
)
def test_a_damaged_file_is_refused(model, tmp_path, change: Callable[[bytes], bytes], reason):
    sha256 = hashlib.sha256(model.read_bytes()).hexdigest()
    model.write_bytes(change(model.read_bytes()))
    refused = pull(model, tmp_path / "models", sha256)
    assert refused.returncode == 1 and f"expected {sha256}" in refused.stderr
    refused = pull(model, tmp_path / "models")
    assert refused.returncode == 1 and reason in refused.stderr, refused.stderr
    assert list((tmp_path / "models").iterdir()) == []
