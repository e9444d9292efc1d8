"""The key by which load balancers route calls."""

from collections.abc import Iterable

from blake3 import blake3

ROUTE_HEADER = "x-hlorank-route"
"""Equal for all calls about one graph, so that they reach the replica that has it cached."""

_PURPOSE = "hlorank 2026-11 route key"


def route_key(parts: Iterable[bytes]) -> str:
    """Returns 64 hexadecimal digits derived from the graph's bytes, each part after its length."""
    material = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    return blake3(material, derive_key_context=_PURPOSE).hexdigest()
