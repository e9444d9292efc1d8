"""The name of what run times are measured on."""

import platform

from hlorank.wire.defaults import TARGET_BYTES


def default_target(compiler: str, threads: int = 1) -> str:
    """Names this machine's processor, a compiler with its version, and the threads of a program.

    ``threads`` is 0 for as many as the compiler uses.
    """
    counted = {0: "all threads", 1: "1 thread"}.get(threads, f"{threads} threads")
    name = f"{processor()}, {compiler}, {counted}"
    return name.encode()[:TARGET_BYTES].decode(errors="ignore")


def processor() -> str:
    """Returns the processor's model name, or its architecture if the name is unknown."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [
                line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
            ]
        return names[0]
    except (OSError, IndexError):
        return platform.processor() or platform.machine()
