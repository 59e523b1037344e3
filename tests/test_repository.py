"""Rules that hold for the repository as a whole."""

import ast
import itertools
import os
import pathlib
import re
import subprocess
import sys

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOCKS = sorted((ROOT / "requirements").glob("tfx-*.txt"))


def repository_files():
    """Tracked files, and new ones that git does not ignore;
    every file where there is no git (an unpacked archive).
    """
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
        names = (
            subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
            .stdout.decode()
            .split("\0")
        )
        return sorted({ROOT / name for name in names if name and (ROOT / name).is_file()})
    files = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [
            f
            for f in folders
            if f not in {".venv", "build", "dist", "__pycache__"} and "_cache" not in f
        ]
        files += [pathlib.Path(folder, name) for name in names]
    return sorted(files)


def imported_packages(tree):
    """Yields the names of the packages that a module imports, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." if node.level else node.module.partition(".")[0]


def test_keras_models_needs_keras_and_numpy_alone():
    """Which of our own packages may import which is in `test_layers.py`."""
    allowed = set(sys.stdlib_module_names) | {"keras", "numpy", "keras_models"}
    for path in (ROOT / "keras_models").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imports = set(imported_packages(tree))
        if path.name == "keras_hub_layers.py":
            # Of an extra: a function imports it where a pre-trained body is made.
            top = ast.Module([node for node in tree.body if not isinstance(node, ast.FunctionDef)])
            assert "keras_hub" in imports - set(imported_packages(top))
            imports.remove("keras_hub")
        assert imports <= allowed, f"{path.relative_to(ROOT)} imports {sorted(imports - allowed)}"


def test_files_named_in_the_documentation_exist():
    """A name may leave out the package, as in `models/seq2seq.py`; `NAME.py` stands for any."""
    names = {path.relative_to(ROOT).as_posix() for path in repository_files()}
    missing = []
    for path in repository_files():
        if path.suffix == ".md" and path.name != "CHANGELOG.md":
            text = path.read_text(encoding="utf-8")
            for match in re.finditer(r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|toml|jinja))`", text):
                ending = match[1]
                if "NAME" not in ending and not any(
                    f"/{name}".endswith(f"/{ending}") for name in names
                ):
                    line = text[: match.start()].count("\n") + 1
                    missing.append(f"{path.relative_to(ROOT)}:{line}: {ending}")
    assert not missing, "\n".join(missing)


def test_the_architecture_lists_the_folders():
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    listed = re.findall(
        r"^\| `(\w+)/` \|", page.split("## Folders")[1].split("## ")[0], re.MULTILINE
    )
    parts = [path.relative_to(ROOT).parts for path in repository_files()]
    folders = {first for first, *rest in parts if rest and not first.startswith(".")}
    assert set(listed) == folders - {"docs", "requirements", "tests"}


def test_no_line_is_too_long():
    """What ruff does not see; the locks and what is generated apart."""
    names = {".toml", ".yaml", ".yml", ".in", ".config", ".sh"}
    found = []
    for path in repository_files():
        if path.suffix in names or path.name in ("Makefile", "Dockerfile", "run"):
            lines = path.read_text(encoding="utf-8").splitlines()
            for number, line in enumerate(lines, 1):
                if len(line) > 100:
                    found.append(f"{path.relative_to(ROOT)}:{number}")
    assert not found, "\n".join(found)


def test_no_file_is_too_large():
    """A file has one subject; more than 400 lines are a sign of two."""
    found = []
    for path in repository_files():
        if path.suffix == ".py":
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > 400:
                found.append(f"{path.relative_to(ROOT)}: {lines} lines")
    assert not found, "\n".join(found)


def test_keras_models_loads_without_the_pipeline():
    code = (
        "import sys, pkgutil, keras, keras_models\n"
        "before = set(sys.modules)\n"
        "for m in pkgutil.walk_packages(keras_models.__path__, 'keras_models.'): "
        "__import__(m.name)\n"
        "new = {m.partition('.')[0] for m in set(sys.modules) - before}\n"
        "assert not new & {'tfx', 'tensorflow_text', 'apache_beam', 'components', 'pipeline', "
        "'serving'}, new\n"
    )
    # JAX, so that an import of TensorFlow through anything but Keras' own backend shows.
    environment = {**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_no_file_names_a_machine_or_a_registry():
    hosts = [
        r"pypi\.org",
        r"pythonhosted\.org",
        r"npmjs\.org",
        r"registry\.npmjs",
        r"deb\.debian\.org",
    ]
    forbidden = re.compile(
        "|".join([r"(?<![\w./-])/(?:work|root|Users)/", r"--(?:extra-)?index-url\s+\w", *hosts])
    )
    found = []
    for path in repository_files():
        if path == pathlib.Path(__file__).resolve():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if forbidden.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_lock(lock):
    text = lock.read_text(encoding="utf-8")
    pins = dict(re.findall(r"^([a-z0-9][a-z0-9.-]*)==(\S+)", text, re.MULTILINE))
    needed = (
        "tfx tensorflow tensorflow-text keras kfp jax pytest hypothesis ruff polib sacrebleu "
        "rouge-score regex"
    )
    assert set(needed.split()) <= set(pins)
    assert pins["tfx"].rpartition(".")[0] == re.match(r"tfx-(\d+\.\d+)", lock.name)[1]
    # Each pin has its hashes, and nothing says where packages come from.
    entries = re.split(r"\n(?=[a-z0-9])", text.strip())
    assert len(entries) >= len(pins) and all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in text


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_lock_has_what_pyproject_asks_for(lock):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = set(
        re.findall(r"^([a-z0-9][a-z0-9.-]*)==", lock.read_text(encoding="utf-8"), re.MULTILINE)
    )
    extras = project["optional-dependencies"]
    ours = [extras[extra] for extra in ("layers", "client", "request", "pipeline", "test", "docs")]
    for requirement in itertools.chain(project["dependencies"], *ours):
        name = re.match(r"[A-Za-z0-9.-]+", requirement)[0].lower()
        if name == project["name"]:
            continue
        wanted = "python_version < '3.11'" not in requirement or lock.stem.endswith("py310")
        assert name in pinned or not wanted, f"run `make lock`: {name} is not in {lock.name}"


def test_there_is_a_lock_for_each_stack():
    assert [lock.name for lock in LOCKS] == ["tfx-1.16-py310.txt", "tfx-1.21.txt"]
