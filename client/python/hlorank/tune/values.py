"""Values of the flags of ``hlorank-tune``, and its environment.

What cannot be read is an error that names the flag, the value and what is expected.
"""

import argparse
import difflib
import os
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from hlorank.address import host_and_port as read_address
from hlorank.errors import ArgumentError
from hlorank.model import model_reference
from hlorank.search.target import TARGET_BYTES
from hlorank.units import duration

T = TypeVar("T")

_LARGEST = 10**9
"""Largest number of a flag."""
_PREFIX = "HLORANK_"
_VARIABLES = frozenset(
    f"{_PREFIX}{name}"
    for name in (
        *("ACCESS_LOG_SAMPLE", "ADMIN_ENDPOINT", "ADMIN_LISTEN", "ALLOWED_HOSTS", "CA"),
        "CERTIFICATE",
        *("DEFAULT_FEATURE_SET_MODELS", "DEFAULT_FUSION_MODEL", "DEFAULT_LAYOUT_MODEL"),
        *("DEFAULT_TILE_MODEL", "DRAIN_SECONDS", "EMBEDDING_CACHE_BYTES", "ENDPOINT"),
        *("GRAPH_CACHE_BYTES", "KEY", "LISTEN", "LOG", "LOG_FORMAT", "MAX_CALL_BYTES"),
        *("MAX_CLIENT_REQUESTS", "MAX_COMPRESSION_RATIO", "MAX_CONFIGS", "MAX_CONFIG_ENTRIES"),
        *("MAX_CONNECTIONS", "MAX_CONNECTION_CALLS", "MAX_EDGES", "MAX_GRAPH_BYTES"),
        *("MAX_HEADER_BYTES", "MAX_IDLE_SECONDS", "MAX_LOAD_SECONDS", "MAX_MEASUREMENTS_BYTES"),
        *("MAX_MESSAGE_BYTES", "MAX_MESSAGE_SECONDS", "MAX_NODES", "MAX_QUEUED_NODES"),
        *("MAX_REQUESTS", "MAX_RUN_SECONDS", "MAX_SLOWDOWN", "MAX_STREAM_CONFIGS"),
        *("MAX_STREAM_IDLE_SECONDS", "MEASUREMENTS", "METRICS_LISTEN", "MODELS", "MODELS_KEY"),
        *("ONNXRUNTIME", "OTLP_CA", "OTLP_ENDPOINT", "POLL_SECONDS", "REPLAY_SHARE"),
        *("RETAIN_VERSIONS", "SHARED", "STREAM_WINDOW_BYTES", "TLS_CERTIFICATE", "TLS_CLIENT_CA"),
        *("TLS_KEY", "TOKEN", "TOKENS", "TOKEN_FILE", "TRACE_SAMPLE_RATIO", "TRUSTED_PROXIES"),
        *("WORKERS", "TEST_TIME_FACTOR"),
    )
)
"""Variables of the server, the command line and the tests. ``hlorank-tune`` itself reads none."""


def count(text: str) -> int:
    """Reads a whole number from 1."""
    return _whole_number(text, 1)


def natural(text: str) -> int:
    """Reads a whole number from 0."""
    return _whole_number(text, 0)


def _whole_number(text: str, least: int) -> int:
    number = int(text) if re.fullmatch(r"[0-9]{1,10}", text) else -1
    if not least <= number <= _LARGEST:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a whole number from {least} to {_LARGEST}"
        )
    return number


def minutes(text: str) -> float:
    """Reads minutes, or a duration with a unit, and returns minutes."""
    return _checked(lambda: duration(text, bare="min")) / 60


def address(text: str) -> str:
    """Reads the address of a server."""
    _checked(lambda: read_address(text))
    return text


def model(text: str) -> str:
    """Reads the name of a model."""
    _checked(lambda: model_reference(text))
    return text


def target(text: str) -> str:
    """Reads the name of what run times are measured on."""
    size = len(text.encode(errors="surrogateescape"))
    if not 1 <= size <= TARGET_BYTES:
        raise argparse.ArgumentTypeError(f"has {size} bytes, expected 1 to {TARGET_BYTES}")
    return text


def path_text(text: str) -> str:
    """Reads a path, which is not empty."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError(f"'{text}' is not a path")
    return text


def _checked(read: Callable[[], T]) -> T:
    try:
        return read()
    except ArgumentError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def unknown_variables(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Returns a warning for every variable of hlorank's prefix that no program of it reads."""
    unknown = sorted(n for n in environment if n.startswith(_PREFIX) and n not in _VARIABLES)
    return [f"warning: {name} is not a variable of hlorank{_similar(name)}" for name in unknown]


def _similar(name: str) -> str:
    close = difflib.get_close_matches(name, _VARIABLES, n=1)
    return f"; did you mean {close[0]}?" if close else ""
