"""Makes an environment of its own for each peer, from the package registry, with every version
pinned.

    python -m benchmarks.peers.environments [--peers opennmt_py,opennmt_tf,transformers] [--folder
    build/peers]

`requirements/PEER.in` says what is wanted and why, `requirements/PEER.txt` every version; both are
installed by uv where it is found, else by venv and pip, whose own settings (another index, say one
with builds of torch for CPUs alone) hold. The registry's torch for Linux brings CUDA along, which
takes 5 GB of disk and is not used. A peer that does not install is reported with the installer's
last words, and the others go on. Tables then say that it is left out, and why.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Mapping

from benchmarks.peers import executable_stacks
from pipeline.common import whole_files

ROOT = pathlib.Path(__file__).resolve().parents[2]
REQUIREMENTS = pathlib.Path(__file__).parent / "requirements"
FOLDER = ROOT / "build" / "peers"
#: Each peer's environment, and what must be importable in it.
PEERS = {
    "opennmt_py": ("onmt", "torch"),
    "opennmt_tf": ("opennmt", "tensorflow"),
    "transformers": ("transformers", "ctranslate2"),
}
# The only Python that all three have wheels for.
PYTHON = "3.10"


def interpreter(peer: str, folder: pathlib.Path = FOLDER) -> pathlib.Path:
    """Returns the path of a peer's Python.

    Raises:
        SystemExit: the environment was not made yet.
    """
    path = pathlib.Path(folder) / peer / "bin" / "python"
    if not path.exists():
        raise SystemExit(
            f"The peer {peer} is not installed: run python -m benchmarks.peers.environments "
            f"--peers {peer}."
        )
    return path


def left_out(
    environments: Mapping[str, str | None], folder: pathlib.Path = FOLDER
) -> dict[str, str]:
    """Returns the programs whose peer cannot be had on this system, and why.

    Args:
        environments: the peer that each program needs; None for this environment.
        folder: of all environments.
    """
    reasons = {}
    for program, peer in environments.items():
        path = _failure(peer, folder) if peer else None
        if path and path.is_file():
            reasons[program] = path.read_text(encoding="utf-8").strip().splitlines()[-1]
    return reasons


def taking_part(
    environments: Mapping[str, str | None], labels: Mapping[str, str], folder: pathlib.Path = FOLDER
) -> tuple[list[str], list[str]]:
    """Returns the programs that can be had on this system, and a sentence for those that cannot.

    Args:
        environments, folder: see `left_out`.
        labels: what tables call the programs.

    Raises:
        SystemExit: there is none; the sentences.
    """
    reasons = left_out(environments, folder)
    names = [name for name in environments if name not in reasons]
    notes = note(labels, reasons)
    if not names:
        raise SystemExit(" ".join(notes))
    return names, notes


def note(labels: Mapping[str, str], reasons: Mapping[str, str]) -> list[str]:
    """Returns a sentence for each reason that left programs out of a table.

    Args:
        labels: what tables call the programs.
        reasons: what `left_out` returned.
    """
    programs: dict[str, list[str]] = {}
    for program, reason in reasons.items():
        programs.setdefault(reason, []).append(labels.get(program, program))
    return [
        f"Left out, because its installation failed here ({reason.rstrip('.')}): "
        f"{'; '.join(names)}."
        for reason, names in programs.items()
    ]


def _failure(peer: str, folder: pathlib.Path) -> pathlib.Path:
    """Returns the path of the file that says why a peer could not be installed."""
    return pathlib.Path(folder) / f"{peer}.failed.txt"


def find_uv() -> str | None:
    """Returns the path of uv, beside this Python or on the search path, or None."""
    beside = pathlib.Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else shutil.which("uv")


def commands(peer: str, folder: pathlib.Path, uv: str | None) -> list[list[str]]:
    """Returns the command lines that make a peer's environment.

    Args:
        peer: one of `PEERS`.
        folder: of all environments.
        uv: the path of uv, or None to use venv and pip.
    """
    target, lock = folder / peer, str(REQUIREMENTS / f"{peer}.txt")
    python = str(target / "bin" / "python")
    if uv:
        return [
            [uv, "venv", "--python", PYTHON, "--allow-existing", str(target)],
            [uv, "pip", "install", "--python", python, "-r", lock],
        ]
    return [
        [f"python{PYTHON}", "-m", "venv", str(target)],
        # Without a cache, which would be as large as what is installed.
        [python, "-m", "pip", "install", "--no-cache-dir", "-r", lock],
    ]


def make(peer: str, folder: pathlib.Path) -> str | None:
    """Makes one environment; returns None, or what went wrong, which `left_out` then finds."""
    wrong = _install(peer, folder)
    failure = _failure(peer, folder)
    failure.unlink(missing_ok=True)
    if wrong is not None:
        failure.parent.mkdir(parents=True, exist_ok=True)
        whole_files.write_text(failure, f"{wrong}\n")
    return wrong


def _install(peer: str, folder: pathlib.Path) -> str | None:
    for command in commands(peer, folder, find_uv()):
        if wrong := _run(command):
            return wrong
    executable_stacks.clear(folder / peer)
    imports = "; ".join(f"import {module}" for module in PEERS[peer])
    return _run([str(folder / peer / "bin" / "python"), "-c", imports])


def _run(command: list[str]) -> str | None:
    """Runs a command; returns None, or the last lines of what it said before it failed."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError as error:
        return str(error)
    if done.returncode:
        return "\n".join(done.stdout.strip().splitlines()[-5:]) or f"{command[0]} failed"
    return None


def main() -> None:
    """Makes the environments, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--folder", type=pathlib.Path, default=FOLDER)
    options = parser.parse_args()
    failed = False
    for peer in options.peers.split(","):
        wrong = make(peer, options.folder)
        failed = failed or wrong is not None
        print(f"{peer}: {'installed' if wrong is None else 'failed' + chr(10) + wrong}", flush=True)
    raise SystemExit(int(failed))


if __name__ == "__main__":
    main()
