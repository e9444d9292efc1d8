"""The processor that programs run on."""

import platform


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
