"""The networks of the zoo whose distinct dispatches are measured beside random kernels."""

from hlorank_training.measuring.zoo import Network, networks

PER_FAMILY = 2

SLOW = {
    "plain_nchw",
    "plain_nchw_reversed",
    "residual_nhwc_reversed",
    "shuffle",
    "vision_nchw",
}
"""Networks that take 0.3 to 1.4 s with the default tiles, too long to measure many tiles."""


def training_programs() -> list[Network]:
    """Returns the first networks of every family, without training steps."""
    taken: dict[str, list[Network]] = {}
    for network in networks():
        chosen = taken.setdefault(network.family, [])
        if not network.train and network.name not in SLOW and len(chosen) < PER_FAMILY:
            chosen.append(network)
    return [network for chosen in taken.values() for network in chosen]
