"""What programs run on."""

import platform


def processor() -> str:
    """The processor's model name, where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [
                line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
            ]
        return names[0]
    except (OSError, IndexError):
        return platform.processor() or platform.machine()
