"""The name of what run times are measured on."""

from hlorank.measure.processor import processor

TARGET_BYTES = 256
"""Maximum length of a target."""


def default_target(compiler: str, threads: int = 1) -> str:
    """Names this machine's processor, a compiler with its version, and the threads of a program.

    ``threads`` is 0 for as many as the compiler uses.
    """
    counted = {0: "all threads", 1: "1 thread"}.get(threads, f"{threads} threads")
    name = f"{processor()}, {compiler}, {counted}"
    return name.encode()[:TARGET_BYTES].decode(errors="ignore")
