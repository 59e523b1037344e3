"""Light installations, versions, and packages of another project with the names of ours."""

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
OURS = ("pipeline", "components", "serving", "keras_models")
#: What a distribution is imported as, where that is another name.
IMPORTED_AS = {"grpcio": "grpc", "protobuf": "google"}
#: What the packages of extras bring along: newer grpcio needs it.
BROUGHT = ("typing_extensions",)
#: Ends each import of a package that is neither Python's, nor ours, nor named in the arguments.
BLOCK_OTHERS = """
import sys

class Others:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in ALLOWED:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Others())
"""


def packages_of(*extras):
    """Returns what the packages of extras are imported as."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["dependencies"] == []
    names = set()
    for requirement in (
        line for extra in extras for line in project["optional-dependencies"][extra]
    ):
        name, inner = re.match(r"([\w.-]+)(?:\[(.*?)\])?", requirement).groups()
        if name == project["name"]:
            names |= packages_of(*inner.split(","))
        else:
            names.add(IMPORTED_AS.get(name, name))
    return names


def run_with(packages, code, *arguments, **options):
    """Runs Python code where no packages but these can be imported."""
    blocking = f"ALLOWED = {sorted({*packages, *BROUGHT, *OURS})!r}\n{BLOCK_OTHERS}"
    return subprocess.run(
        [sys.executable, "-c", blocking + code, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        **options,
    )


def test_extras_hold_what_they_are_for():
    assert packages_of("layers") == {"keras", "numpy"}
    assert packages_of("client") == {"grpc", "google"}
    assert {"tfx", "tensorflow", "keras", "grpc", "regex"} <= packages_of("pipeline")


def test_the_client_needs_its_extra_alone():
    code = (
        "import serving\n"
        "from serving import AsyncClient, Client, Glossary, RequestError, glossary_files\n"
        "serving.Client('localhost:1').close()\n"
    )
    done = run_with(packages_of("client"), code)
    assert done.returncode == 0, done.stderr
    assert run_with(set(), code).returncode == 1, "the block lets everything through"


VERBATIM = "from serving import verbatim_command; sys.exit(verbatim_command.main())"


def test_the_command_request_needs_its_extra_alone(tmp_path):
    arguments = ["request", "--address", "localhost:1", "--attempts", "1", "Delete"]
    done = run_with(packages_of("request"), VERBATIM, *arguments, cwd=tmp_path)
    assert "localhost:1" in done.stderr and "Traceback" not in done.stderr
    assert "not installed" not in done.stderr


@pytest.mark.parametrize(
    "installed, arguments, package, extra",
    [
        ((), ["run", "localization_en_fr"], "[a-z_]+", "pipeline"),
        ((), ["request", "--address", "localhost:1", "x"], "[a-z_]+", "request"),
        # What a command imports later.
        (("request",), ["report", "."], "[a-z_]+", "pipeline"),
    ],
)
def test_the_command_says_which_extra_it_lacks(installed, arguments, package, extra, tmp_path):
    done = run_with(packages_of(*installed), VERBATIM, *arguments, cwd=tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    assert re.fullmatch(
        rf"verbatim: the package '{package}' is not installed; this command needs the extra "
        rf"'{extra}': pip install 'path/to/verbatim\[{extra}\]', a checkout of Verbatim\.\n",
        done.stderr,
    ), done.stderr


def test_packages_have_the_installed_version():
    import components
    import keras_models
    import pipeline
    import serving
    from serving.own_version import own_version

    for package in (components, keras_models, pipeline, serving):
        assert package.__version__ == own_version()
        with pytest.raises(AttributeError):
            _ = package.__absent__


@pytest.mark.parametrize("hiding", ["pipeline/__init__.py", "pipeline/configs.py", "pipeline.py"])
def test_a_package_that_hides_ours_is_named(hiding, tmp_path):
    """A template of TFX has a folder `pipeline`."""
    file = tmp_path / hiding
    file.parent.mkdir(exist_ok=True)
    file.write_text("")
    hidden = file if hiding == "pipeline.py" else file.parent
    sentence = (
        f"{hidden} hides Verbatim's package 'pipeline' in {ROOT}; rename it, or take {tmp_path} "
        "off Python's path (PYTHONPATH, or the folder of your script)."
    )
    # The folder comes first; an empty folder without `__init__.py` hides what is imported by a
    # finder, as an editable installation is.
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    code = f"import sys; sys.path.append({str(ROOT)!r}); "
    if hiding == "pipeline/configs.py":
        code = (
            "import importlib.util, sys\n"
            "class Finder:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            f"        file = {str(ROOT)!r} + '/' + name + '/__init__.py'\n"
            f"        if name in {OURS!r}:\n"
            "            return importlib.util.spec_from_file_location(name, file)\n"
            "sys.meta_path.append(Finder())\n"
        )
    for use, message in ((VERBATIM, f"verbatim: {sentence}\n"), ("import components", sentence)):
        done = subprocess.run(
            [sys.executable, "-c", code + use],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1
        assert message in done.stderr, done.stderr


def test_the_command_checks_before_it_imports():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"verbatim": "serving.verbatim_command:main"}
