"""What the README and the pages under docs/ show, works."""

import ast
import pathlib
import re
import shlex

import pytest

from pipeline.commands import main, run
from pipeline.recipes import loading

README = pathlib.Path(__file__).parents[1] / "README.md"
DOCS = README.parent / "docs"
PAGES = (README, *sorted(DOCS.rglob("*.md")))
OTHER_PAGES = (
    README.parent / "CONTRIBUTING.md",
    README.parent / "serving" / "deploy" / "README.md",
)


def code_blocks(language, page=README):
    return re.findall(
        rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL
    )


def test_the_functional_model_trains_saves_and_loads(tmp_path, monkeypatch):
    [block] = [block for block in code_blocks("python") if "keras.models.load_model" in block]
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(block, "README.md", "exec"), names)
    assert (tmp_path / "copier.keras").is_file()
    loss = names["model"].evaluate(
        [names["ids"], names["positions"], names["ids"], names["positions"]], names["positions"]
    )
    assert 0 < loss < 10


@pytest.mark.slow
@pytest.mark.parametrize("name", ["layers", "own_head", "own_body", "own_metric", "own_component"])
def test_the_programs_of_a_guide_run(name, tmp_path, monkeypatch):
    """All Python blocks of the page, one after the other; pipelines are made and not run."""
    from keras_models.heads import HEADS

    ran = []
    if name == "own_component":
        import tfx.v1 as tfx

        monkeypatch.setattr(
            tfx.orchestration.LocalDagRunner, "run", lambda self, made: ran.append(made)
        )
    (tmp_path / "pairs.tsv").write_text("source\ttarget\nSave\tEnregistrer\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    heads = dict(HEADS)
    blocks = code_blocks("python", DOCS / "guides" / f"{name}.md")
    assert len(blocks) >= 2
    names = {"__name__": "__main__"}
    try:
        for block in blocks:
            exec(compile(block, f"{name}.md", "exec"), names)
    finally:
        HEADS.clear()
        HEADS.update(heads)
    assert (len(ran) == 1) == (name == "own_component")
    if name == "own_head":
        assert names["found"].copied_from[0, 0].numpy().tolist() == [0, 1, 2]


def test_the_commands_parse():
    """Every `verbatim` line of these pages is one that the command line understands."""
    blocks = [block.replace("\\\n", " ") for page in PAGES for block in code_blocks("sh", page)]
    lines = [
        line
        for block in blocks
        for line in block.splitlines()
        if re.search(r"(^|/)verbatim ", line)
    ]
    assert len(lines) >= 20
    for line in lines:
        words = line.split("verbatim ", 1)[1].partition(">>")[0].rstrip(" &")
        arguments = shlex.split(words, comments=True)
        assert main._parser(arguments).parse_args(arguments).command


def test_the_airflow_dag_runs_commands_of_ours():
    """Airflow itself is not installed here; the page says with which version the DAG was run."""
    page = DOCS / "guides" / "scheduling.md"
    (block,) = code_blocks("python", page)
    operators = [
        {keyword.arg: keyword.value for keyword in node.keywords}
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "BashOperator"
    ]
    assert operators
    for operator in operators:
        program, *arguments = shlex.split(ast.literal_eval(operator["bash_command"]))
        assert program.endswith("/verbatim")
        assert main._parser(arguments).parse_args(arguments).command is run
        assert ast.literal_eval(operator["skip_on_exit_code"]) == run.NOT_BLESSED


def test_options_that_pages_describe_exist():
    """The first column of a table of options, in a page that says how to compile."""
    page = (DOCS / "guides" / "kubeflow.md").read_text(encoding="utf-8")
    described = {
        option
        for row in re.findall(r"^\| (.*?) \|", page, flags=re.MULTILINE)
        for option in re.findall(r"--[a-z-]+", row)
    }
    known = set(
        re.findall(
            r"--[a-z-]+",
            main._parser([])._subparsers._group_actions[0].choices["compile"].format_help(),
        )
    )
    assert len(described) >= 10 and described <= known, described - known


def test_the_recipes_that_pages_show_can_be_loaded(tmp_path):
    """Every TOML block of a guide is a recipe."""
    blocks = [block for page in PAGES for block in code_blocks("toml", page)]
    assert len(blocks) >= 3
    for number, block in enumerate(blocks):
        path = tmp_path / f"shown_{number}.toml"
        path.write_text(block, encoding="utf-8")
        assert loading.load_recipe(path).name == path.stem


def anchors(page):
    """The anchors of a page's headings, as GitHub and MkDocs make them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_what_the_pages_link_to_exists():
    links = 0
    for page in (*PAGES, *OTHER_PAGES):
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if "://" in target:
                continue
            name, _, anchor = target.partition("#")
            linked = page.parent / name if name else page
            # The site makes a page of the notebook beside it.
            notebook = linked.with_suffix(".ipynb")
            assert linked.exists() or notebook.exists(), (page, target)
            assert not anchor or anchor in anchors(linked), (page, target)
            links += 1
    assert links > 60


def test_no_line_of_a_page_is_too_long():
    """Tables apart, whose rows cannot be broken, and results, whose commands are long."""
    found = []
    for page in (*PAGES, *OTHER_PAGES):
        if page.parent.name == "results":
            continue
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            if len(line) > 100 and not line.lstrip().startswith("|"):
                found.append(f"{page.relative_to(README.parent)}:{number}")
    assert not found, found


def test_blocks_in_lists_are_indented_by_four_spaces():
    """With fewer the site ends the list: each step becomes the first of a list of its own."""
    found = []
    for page in DOCS.rglob("*.md"):
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            if re.match(r" {1,3}(```|[-*] |\d+\. )", line):
                found.append(f"{page.relative_to(DOCS)}:{number}")
    assert not found, found


def test_the_readme_is_one_page():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150
