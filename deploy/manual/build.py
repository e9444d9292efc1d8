"""Writes the manual pages of both programs, and their completions for shells.

Usage: build.py OUT [PROGRAMS]: the folder that gets `man` and what each shell looks for, and that
of the built programs (target/dist by default).
"""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = ("hlorank", "hlorank-server")
COMPLETIONS = {
    "bash": "bash-completion/completions/{}",
    "fish": "fish/vendor_completions.d/{}.fish",
    "zsh": "zsh/site-functions/_{}",
}
"""Where shells look for the completions of a program, below a folder such as /usr/share."""


def build(out: Path, programs: Path) -> list[Path]:
    """Writes everything below a folder, and returns the files."""
    pages = out / "man/man1"
    pages.mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        run(programs / name, "man", pages)
        for shell, place in COMPLETIONS.items():
            script = out / place.format(name)
            script.parent.mkdir(parents=True, exist_ok=True)
            script.write_text(run(programs / name, "completions", shell))
    return [file for file in sorted(out.rglob("*")) if file.is_file()]


def run(*command: str | Path) -> str:
    """Runs a command, and returns what it prints."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"manual: {' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:]]
    written = build(given[0], given[1] if len(given) > 1 else REPOSITORY / "target" / "dist")
    print(f"ready: {given[0]}, {len(written)} files")
