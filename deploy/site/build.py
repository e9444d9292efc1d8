"""Builds the documentation as a site: every page of the repository, and a reference of the wire.

Usage: build.py OUT: the folder of the site, which is replaced.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pages import REPOSITORY, contents, place, stage
from wire import wire_reference

WIRE = "docs/wire.md"
SETTINGS = {
    "site_name": "hlorank",
    "theme": {
        "name": "material",
        # No resource comes from elsewhere.
        "font": False,
        "features": ["navigation.sections", "navigation.footer", "content.code.copy"],
    },
    "use_directory_urls": False,
    "markdown_extensions": [
        "tables",
        "pymdownx.superfences",
        "sane_lists",
        {"toc": {"permalink": True}},
    ],
    "validation": {
        "links": {"anchors": "warn", "not_found": "warn"},
        "nav": {"omitted_files": "warn"},
    },
}
"""Of MkDocs, which reads JSON as YAML."""


def build(out: Path) -> None:
    """Builds the site. Links that lead nowhere are errors."""
    with TemporaryDirectory() as folder:
        source = Path(folder, "source")
        sections = contents()
        sections["Reference"] = {"Wire": WIRE} | sections.get("Reference", {})
        stage(source, [page for pages in sections.values() for page in pages.values()])
        (source / WIRE).write_text(wire_reference())
        navigation = [
            {section: [{title: place(page)} for title, page in pages.items()]}
            for section, pages in sections.items()
        ]
        settings = SETTINGS | {"docs_dir": str(source), "site_dir": str(out), "nav": navigation}
        configuration = Path(folder, "mkdocs.yml")
        configuration.write_text(json.dumps(settings))
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
        # Without an advertisement of the theme.
        environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
        command += ["--config-file", str(configuration)]
        done = subprocess.run(command, cwd=REPOSITORY, env=environment)
        if done.returncode:
            shutil.rmtree(out, ignore_errors=True)
            sys.exit("docs: the site was not built; the messages above name pages and links")
    print(f"ready: {out}/index.html")


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve())
