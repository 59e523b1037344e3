"""The Makefile finds an interpreter on a fresh machine; every program on PATH is a fake here."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[1]
# What the recipe needs from the system.
TOOLS = ("awk", "basename", "cp", "dirname", "make", "mkdir", "sort", "touch")

# Says yes to `-c`, and writes down everything else that it is asked. Its environments hold itself;
# `pip install uv` puts the fake uv beside it.
PYTHON = """#!/bin/bash
[ "$1" = -c ] && exit 0
[ "$1" = --version ] && { echo "Python (fake)"; exit 0; }
echo "$(basename "$0") $*" >> "$LOG"
case "$1 $2" in
  "-m venv") mkdir -p "${@: -1}/bin" && cp "$0" "${@: -1}/bin/python" ;;
  "-m pip") cp "$FAKES/uv" "$(dirname "$0")/uv" ;;
esac
"""
UV = """#!/bin/bash
echo "uv $*" >> "$LOG"
case "$1 $2" in
  "python install") [ -n "$REACHED" ] && touch "$FAKES/installed" ;;
  "python find") [ -e "$FAKES/installed" ] && echo "$FAKES/managed_python" ;;
esac
"""
BROKEN = "#!/bin/bash\nexit 127\n"


@pytest.fixture
def make(tmp_path):
    """Function of programs on PATH, by name: makes the environment; returns status, errors, log."""
    fakes, path = tmp_path / "fakes", tmp_path / "path"
    fakes.mkdir()
    path.mkdir()
    log = tmp_path / "log"
    log.touch()

    def write(file, text):
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)

    def call(glibc="2.36", reached=True, installed=False, **programs):
        for name in TOOLS:
            (path / name).symlink_to(shutil.which(name))
        write(fakes / "uv", UV)
        write(fakes / "managed_python", PYTHON)
        if installed:
            (fakes / "installed").touch()
        write(path / "getconf", f"#!/bin/bash\necho glibc {glibc}\n")
        for name, text in programs.items():
            write(path / name.replace("_", "."), text)
        done = subprocess.run(
            ["make", "-f", ROOT / "Makefile", ".venv/bin/uv"],
            cwd=tmp_path,
            env={
                "PATH": str(path),
                "LOG": str(log),
                "FAKES": str(fakes),
                "REACHED": "yes" if reached else "",
                "HOME": os.environ.get("HOME", ""),
            },
            executable=shutil.which("make"),
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stderr, log.read_text("utf-8").splitlines()

    return call


INTO_VENV = ["-m venv --clear .venv", "-m pip install --quiet uv"]


@pytest.mark.parametrize(
    "glibc, name", [("2.36", "python3.10"), ("2.39", "python3.12"), ("2.41", "python3.13")]
)
def test_a_fitting_python_on_path_is_taken(make, glibc, name):
    status, _, log = make(glibc, **{name.replace(".", "_"): PYTHON, "uv": UV})
    assert status == 0
    assert log == [f"{name} {INTO_VENV[0]}", f"python {INTO_VENV[1]}"]


@pytest.mark.parametrize("glibc, version", [("2.36", "3.10"), ("2.41", "3.12")])
def test_uv_on_path_installs_one(make, glibc, version):
    """Another Python is there, and a shim that runs nothing."""
    shim = f"python{version}".replace(".", "_")
    status, _, log = make(glibc, **{shim: BROKEN, "python3": PYTHON, "uv": UV})
    assert status == 0
    assert log == [
        f"uv python find --system {version}",
        f"uv python install {version}",
        f"uv python find --system {version}",
        f"managed_python {INTO_VENV[0]}",
        f"python {INTO_VENV[1]}",
    ]


def test_one_that_uv_has_installed_before_is_taken(make):
    status, _, log = make(reached=False, installed=True, uv=UV)
    assert status == 0
    assert log == [
        "uv python find --system 3.10",
        f"managed_python {INTO_VENV[0]}",
        f"python {INTO_VENV[1]}",
    ]


def test_any_python_installs_uv_which_installs_one(make):
    status, _, log = make(python3=PYTHON)
    assert status == 0
    assert log == [
        "python3 -m venv --clear build/uv",
        "python -m pip install --quiet uv",
        "uv python find --system 3.10",
        "uv python install 3.10",
        "uv python find --system 3.10",
        f"managed_python {INTO_VENV[0]}",
        f"python {INTO_VENV[1]}",
    ]


@pytest.mark.parametrize("programs", [{}, {"python3": BROKEN}, {"uv": UV}, {"python3": PYTHON}])
def test_where_nothing_can_be_had_a_sentence_says_what_to_do(make, programs):
    status, errors, log = make(reached=False, **programs)
    assert status != 0 and not any(".venv" in line for line in log)
    assert "this system (glibc 2.36) needs python3.10 on PATH; install it" in errors


@pytest.mark.parametrize("version", [None, "11.0.2", "1.8.0_402"])
def test_without_java_17_the_engines_are_skipped_with_a_sentence(tmp_path, version):
    for name in (*TOOLS, "sed"):
        (tmp_path / name).symlink_to(shutil.which(name))
    programs = {"mvn": BROKEN}
    if version:
        programs["java"] = f"#!/bin/bash\necho 'openjdk version \"{version}\" 2024-01-16' >&2\n"
    for name, text in programs.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        ["make", "-f", ROOT / "Makefile", "-o", "install", "engines"],
        cwd=tmp_path,
        env={"PATH": str(tmp_path)},
        executable=shutil.which("make"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "make engines: skipped, for it needs Java 17 and Maven\n"
