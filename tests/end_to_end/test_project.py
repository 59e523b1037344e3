"""`verbatim init`: a project that TFX's own command line runs and compiles."""

import os
import pathlib
import subprocess
import sys

import pytest
import yaml

from pipeline.commands import main
from pipeline.recipes import loading

pytestmark = pytest.mark.slow
ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("projects") / "my shop"
    assert main.main(["init", str(folder), "--target", "fr"]) == 0
    return folder


def tfx(project, home, *arguments):
    """Runs TFX's command line in the project's folder, with an empty home."""
    environment = dict(os.environ, HOME=str(home), PYTHONPATH=str(ROOT))
    # It asks `pip` for the packages.
    environment["PATH"] = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, "-m", "tfx.tools.cli.cli_main", *arguments]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_a_project_names_itself_by_its_folder(project):
    assert sorted(path.name for path in project.iterdir()) == [
        "README.md",
        "data",
        "kubeflow_runner.py",
        "local_runner.py",
        "my_shop.toml",
    ]
    assert loading.load_recipe(project / "my_shop.toml").name == "my_shop"
    assert len((project / "README.md").read_text().splitlines()) <= 12


def test_tfxs_command_line_runs_it(project, tmp_path):
    recipe = project / "my_shop.toml"
    recipe.write_text(recipe.read_text().replace("epochs = 20", "epochs = 1"))
    said = tfx(
        project, tmp_path, "pipeline", "create", "--engine=local", "--pipeline-path=local_runner.py"
    )
    assert 'Pipeline "my_shop" created' in said
    tfx(project, tmp_path, "run", "create", "--engine=local", "--pipeline-name=my_shop")
    (version,) = (path for path in (project / "models" / "my_shop").iterdir() if path.is_dir())
    assert (version / "saved_model.pb").is_file()


def test_tfxs_command_line_compiles_it_for_vertex(project, tmp_path):
    said = tfx(
        project,
        tmp_path,
        "pipeline",
        "create",
        "--engine=vertex",
        "--pipeline-path=kubeflow_runner.py",
    )
    assert 'Pipeline "my-shop" created' in said
    compiled = yaml.safe_load((project / "pipeline.yaml").read_text())
    assert compiled["pipelineInfo"]["name"] == "my-shop"


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["--name", "Shop"], "'Shop' cannot be a project's name"),
        (["--name", "pipeline"], "'pipeline' cannot be a project's name"),
        (["--name", "a", "--source", "english text"], "is not the code of a language"),
    ],
)
def test_a_wrong_name_is_refused_before_anything_is_written(tmp_path, capsys, arguments, sentence):
    assert main.main(["init", str(tmp_path / "new"), *arguments]) == 1
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_folder_that_holds_something_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert main.main(["init", str(tmp_path), "--name", "shop"]) == 1
    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
