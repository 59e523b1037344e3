"""Makes an environment of its own for each peer, from the package registry, with every version
pinned.

    python -m benchmarks.peers.environments [--peers opennmt_py,opennmt_tf,transformers] [--folder
    build/peers]

`requirements/PEER.in` says what is wanted and why, `requirements/PEER.txt` every version; both are
installed by uv where it is found, else by venv and pip, whose own settings (another index, say one
with builds of torch for CPUs alone) hold. The registry's torch for Linux brings CUDA along, which
takes 5 GB of disk and is not used. A peer that does not install is reported with the installer's
last words, and the others go on.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys

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
    """Makes one environment; returns None, or what went wrong."""
    imports = "; ".join(f"import {module}" for module in PEERS[peer])
    check = [str(folder / peer / "bin" / "python"), "-c", imports]
    for command in (*commands(peer, folder, find_uv()), check):
        try:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        except OSError as error:
            return str(error)
        if done.returncode:
            return "\n".join(done.stdout.strip().splitlines()[-5:])
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
