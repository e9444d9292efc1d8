"""The pages of the repository, as the index lists them, and copies of them for the site."""

import json
import re
import shutil
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
INDEX = REPOSITORY / "docs" / "README.md"

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def contents() -> dict[str, dict[str, str]]:
    """Returns the pages of each section of the index: path by title."""
    sections: dict[str, dict[str, str]] = {}
    for section in INDEX.read_text().split("\n## ")[1:]:
        title, _, rows = section.partition("\n")
        # A line may list two pages, of which the second is named by its link, too.
        pages = re.findall(r"(?:^\* |, )\[([^\]]+)\]\(([^)]+)\)", rows, re.MULTILINE)
        sections[title] = {name: _path(INDEX.parent / target) for name, target in pages}
    return sections


def place(page: str) -> str:
    """Returns where the copy of a page is; that of a notebook is a page of its cells."""
    return page.removesuffix(".ipynb") + ".md" if page.endswith(".ipynb") else page


def _path(page: Path) -> str:
    return str(page.resolve().relative_to(REPOSITORY))


def stage(folder: Path, pages: list[str]) -> None:
    """Copies pages, with the pictures that they show, at the same paths."""
    known = {(REPOSITORY / page).resolve() for page in [*pages, _path(INDEX)]}
    for page in sorted(known):
        if not page.exists():
            continue  # generated
        target = folder / place(_path(page))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_with_links(page, _text(page), known, folder))


def _text(page: Path) -> str:
    if page.suffix != ".ipynb":
        return page.read_text()
    cells = json.loads(page.read_text())["cells"]
    fences = {"code": ("```python\n", "\n```"), "markdown": ("", "")}
    fenced = ["".join(cell["source"]).join(fences[cell["cell_type"]]) for cell in cells]
    return "\n\n".join(fenced) + "\n"


def _with_links(page: Path, text: str, known: set[Path], folder: Path) -> str:
    """Leaves links to pages, copies pictures, and makes names of links to sources."""

    def replaced(link: re.Match[str]) -> str:
        is_picture, title, target = link.groups()
        if "://" in target or target.startswith("#"):
            return link[0]
        path = (page.parent / target.partition("#")[0]).resolve()
        if is_picture:
            copy = folder / path.relative_to(REPOSITORY)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        elif path not in known:
            return title
        return link[0].replace(target, place(target))

    # Outside blocks of code.
    parts = text.split("```")
    parts[::2] = [_LINK.sub(replaced, part) for part in parts[::2]]
    return "```".join(parts)
