"""Traces of calls in a collector."""

import json
import socket
import subprocess
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest
from replicas import free_ports, running, wait_for

METHOD = "hlorank.v1.ModelService/ListModels"


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def list_models(url: str) -> None:
    json_call = {"content-type": "application/json"}
    request = urllib.request.Request(url, b"{}", json_call)
    with urllib.request.urlopen(request) as response:
        assert json.load(response)["models"]


def test_a_collector_prints_a_call_in_the_form_of_opentelemetry(tmp_path):
    package = find_spec("rotel")
    if package is None or package.origin is None:
        pytest.skip("needs the collector of `pip install rotel`")
    grpc, http = free_ports(2)
    collect = [Path(package.origin).with_name("rotel-agent"), "start", "--exporter=blackhole"]
    collect += [f"--otlp-grpc-endpoint=127.0.0.1:{grpc}", f"--otlp-http-endpoint=127.0.0.1:{http}"]
    collect += ["--debug-log=traces", "--debug-log-verbosity=detailed"]
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{grpc}"}
    printed = tmp_path / "printed"
    with printed.open("w") as output, subprocess.Popen(collect, stdout=output) as collector:
        try:
            wait_for("the collector", lambda: listens(grpc))
            with running(1, tmp_path, **variables) as [replica]:
                list_models(f"http://127.0.0.1:{replica.port}/{METHOD}")
                wait_for("the span", lambda: f"Str({METHOD})" in printed.read_text())
                replica.drain()
        finally:
            collector.kill()
    text = printed.read_text()
    for line in (
        "service.name: Str(hlorank-server)",
        "ScopeSpans SchemaURL: https://opentelemetry.io/schemas/1.45.0",
        f"Name           : {METHOD}",
        "Kind           : SPAN_KIND_SERVER",
        "rpc.system.name: Str(grpc)",
        f"rpc.method: Str({METHOD})",
        "rpc.response.status_code: Str(OK)",
        "server.address: Str(127.0.0.1)",
        f"server.port: Int({replica.port})",
    ):
        assert line in text, text
