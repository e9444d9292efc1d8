"""The code on the page about other people's tuners, run as a reader would run it."""

import re
import runpy

import pytest
from servers import REPOSITORY

PAGE = "docs/in-your-tuner.md"


def sections() -> dict[str, str]:
    """The Python blocks of each section, by its heading."""
    parts = re.split(r"^## (.*)\n", (REPOSITORY / PAGE).read_text(), flags=re.M)[1:]
    texts = dict(zip(parts[::2], parts[1::2], strict=True))
    return {
        heading: "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S))
        for heading, text in texts.items()
    }


def packages(code: str) -> list[str]:
    """The packages that code imports, other than ours."""
    found = re.findall(r"^(?:from|import) (\w+)", code, re.M)
    return [package for package in found if package != "hlorank"]


@pytest.mark.parametrize("section", [name for name, code in sections().items() if code])
def test_the_python_of_a_section_runs(section, store, tmp_path, monkeypatch):
    code = sections()[section]
    for package in packages(code):
        pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "page.py"  # Triton reads the source of kernels
    script.write_text(code.replace("127.0.0.1:7070", store))
    # As a program, whose functions Ray sends to other processes.
    runpy.run_path(str(script), run_name="__main__")
