"""Writes the manual pages of all programs, and their completions for shells.

Usage: build.py OUT [PROGRAMS]: the folder that gets `man` and what each shell looks for, and that
of the built programs (target/release by default).
"""

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = ("hlorank", "hlorank-server")
TUNER = "hlorank-tune"
PYTHON = {"PYTHONPATH": str(REPOSITORY / "client" / "python")}
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
    page = ["--module=hlorank.tune.command", "--function=parser", f"--prog={TUNER}"]
    page += ["--project-name=hlorank", "--format=single-commands-section", "--manual-section=1"]
    page += ["--manual-title=hlorank", "--description=measures the best candidates of a program"]
    writer = Path(sys.executable).with_name("argparse-manpage")
    # The date of the page, so that it is the same on every day.
    run(writer, *page, f"--output={pages / TUNER}.1", **PYTHON, SOURCE_DATE_EPOCH="0")
    for shell, place in COMPLETIONS.items():
        for name in (*PROGRAMS, TUNER):
            script = out / place.format(name)
            script.parent.mkdir(parents=True, exist_ok=True)
            script.write_text(completions(name, shell, programs))
    return [file for file in sorted(out.rglob("*")) if file.is_file()]


def completions(name: str, shell: str, programs: Path) -> str:
    """Returns the completions of a program for a shell."""
    if name == TUNER:
        parser = "hlorank.tune.command.parser"
        script = f"--shell={shell}", f"--prog={TUNER}", "--prefix=hlorank_tune"
        return run(sys.executable, "-m", "shtab", *script, parser, **PYTHON)
    return run(programs / name, "completions", shell)


def run(*command: str | Path, **variables: str) -> str:
    """Runs a command, and returns what it prints."""
    environment = os.environ | variables
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"manual: {' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:]]
    written = build(given[0], given[1] if len(given) > 1 else REPOSITORY / "target" / "release")
    print(f"ready: {given[0]}, {len(written)} files")
