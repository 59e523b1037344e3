"""What the documentation site is given by the code: generated pages, and links to the API."""

import argparse
import ast
import contextlib
import functools
import io
import itertools
import json
import pathlib
import posixpath
import re
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from pipeline.commands import main
from pipeline.recipes import key_reference

ROOT = pathlib.Path(__file__).parents[2]

#: The pages of the API: the path, the title, and the modules whose public names it lists.
API_PAGES = {
    "layers": ("Layers", ("keras_models.layers",)),
    "heads": ("Heads", ("keras_models.heads",)),
    "models": ("Models", ("keras_models.models",)),
    "decoding": ("Decoding", ("keras_models.decoding",)),
    "token_ids": ("Token ids", ("keras_models.token_ids",)),
    "losses": ("Losses", ("keras_models.losses",)),
    "language_modeling": ("Language modeling", ("keras_models.language_modeling",)),
    "client": (
        "Client and model",
        (
            "serving.text_model",
            "serving.client",
            "serving.model",
            "serving.async_client",
            "serving.answers",
            "serving.glossary",
            "serving.glossary_files",
        ),
    ),
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages; MkDocs calls it."""
    pages = {
        "reference/recipe_keys.md": key_reference.markdown(),
        "reference/command_line.md": command_line(),
        "guides/examples.md": examples_page(),
        **{f"{path.stem}.md": notebook_page(path) for path in (ROOT / "docs").glob("*.ipynb")},
        **{f"reference/api/{name}.md": api_page(*page) for name, page in API_PAGES.items()},
    }
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links what a page names to the API; MkDocs calls it."""
    folder, name = posixpath.split(page.file.src_uri)
    markdown = link_examples(markdown, folder)
    if folder == "reference/api" or name == "recipe_keys.md":
        return markdown
    return link_names(markdown, folder)


#: Code spans, and before them what keeps its text: code blocks, headings and links.
_CODE = re.compile(
    r"^ *```.*?^ *```|^#[^\n]*|\[[^\]]*\]\([^)]*\)|`(?:(keras_models(?:\.\w+)*)\.)?([A-Za-z]\w*)`",
    flags=re.DOTALL | re.MULTILINE,
)


def link_names(markdown: str, folder: str) -> str:
    """Returns a page whose classes, and functions with their package, are links to the API."""
    places = api_places()

    def link(match: re.Match[str]) -> str:
        package, name = match[1], match[2]
        if name not in places or not (package or name[0].isupper()):
            return match[0]
        page, module = places[name]
        path = posixpath.relpath(f"reference/api/{page}.md", folder or ".")
        return f"[{match[0]}]({path}#{module}.{name})"

    return _CODE.sub(link, markdown)


@functools.cache
def api_places() -> dict[str, tuple[str, str]]:
    """Returns the page and the module of each public name of the API."""
    return {
        name: (page, module)
        for page, (_, modules) in API_PAGES.items()
        for module in modules
        for name in public_names(module)
    }


def api_page(title: str, modules: tuple[str, ...]) -> str:
    """Returns a page that mkdocstrings fills with the public names of modules."""
    names = [f"{module}.{name}" for module in modules for name in public_names(module)]
    return f"# {title}\n\n" + "\n".join(f"::: {name}\n" for name in names)


def public_names(module: str) -> list[str]:
    """Returns what a package passes on (`import X as X`), or what a module defines, in its order."""
    path = ROOT.joinpath(*module.split("."))
    is_package = path.is_dir()
    source = (path / "__init__.py" if is_package else path.with_suffix(".py")).read_text("utf-8")
    names = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and is_package:
            names += [alias.name for alias in node.names if alias.asname == alias.name]
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.append(node.name)
    return [name for name in names if not name.startswith("_")]


def notebook_page(path: pathlib.Path) -> str:
    """Returns a notebook as a page: its texts, its programs, and what they printed."""
    parts = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        shell = source.startswith("%%bash\n")
        parts.append(_fenced("sh" if shell else "python", source.removeprefix("%%bash\n")))
        printed = itertools.chain.from_iterable(
            output["text"] for output in cell["outputs"] if output.get("name") == "stdout"
        )
        if text := "".join(printed).rstrip():
            parts.append(_fenced("text", text))
    return "\n\n".join(parts) + "\n"


def examples_page() -> str:
    """Returns a page with the scripts of `examples/`."""
    parts = ["# Examples of layers", "Scripts of the folder `examples/`, each with its purpose first."]
    for path in sorted((ROOT / "examples").glob("*.py")):
        parts += [f"## {path.name}", _fenced("python", path.read_text("utf-8").rstrip())]
    return "\n\n".join(parts) + "\n"


def link_examples(markdown: str, folder: str) -> str:
    """Returns a page whose links to scripts of `examples/` lead to the page that shows them."""
    page = posixpath.relpath("guides/examples.md", folder or ".")

    def link(match: re.Match[str]) -> str:
        return f"]({page}#{match[1]}py)"

    return re.sub(r"\]\((?:\.\./)+examples/(\w+)\.py\)", link, markdown)


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


def command_line() -> str:
    """Returns the page with the help of every command."""
    with contextlib.redirect_stderr(io.StringIO()):
        parser = main._parser([])
    lines = ["# Command line", "", "```text", parser.format_help().rstrip(), "```", ""]
    for name, command in _commands(parser).items():
        text = command.format_help().rstrip()
        lines += [f"## verbatim {name}", "", "```text", text, "```", ""]
    return "\n".join(lines)


def _commands(parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Returns the parsers of the commands by name, without other names of the same."""
    (actions,) = (
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    commands: dict[str, Any] = {}
    for name, command in actions.choices.items():
        if command not in commands.values():
            commands[name] = command
    return commands
