"""The documentation site: it builds without a warning, and its generated pages are complete."""

import html
import inspect
import pathlib
import re
import subprocess
import sys

import pytest

from pipeline.recipes import fields, key_reference
from pipeline.recipes.recipe_keys import RecipeKeys

ROOT = pathlib.Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site; a broken link or anchor ends the build."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", folder]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def text_of(page):
    """The text of a page, without its tags."""
    return html.unescape(re.sub(r"<[^>]*>", "", page.read_text(encoding="utf-8")))


def test_every_key_has_a_meaning():
    keys = list(key_reference.keys_of())
    assert [key.name for key in keys] == list(fields.dotted_keys(RecipeKeys))
    without = [key.name for key in keys if not key.meaning and "thresholds." not in key.name]
    assert not without, f"a comment above the field is its meaning: {without}"


def test_keys_say_what_they_take():
    keys = {key.name: key for key in key_reference.keys_of()}
    assert keys["model.cell"].limits == '`"gru"`, `"lstm"`' and keys["model.cell"].kind == "text"
    assert keys["model.dropout"].limits == "0.0 to 0.95"
    assert keys["training.epochs"][1:4] == ("whole number", "10", "at least 1")
    assert keys["data.train_files"][1:3] == ("list of texts", "[]")
    assert keys["name"].default == "" and keys["training.deterministic"].default == "false"


def test_the_site_has_every_key_command_and_layer(site):
    keys = text_of(site / "reference" / "recipe_keys.html")
    for key in key_reference.keys_of():
        assert (key.name if "thresholds." not in key.name else key.name.split(".")[-1]) in keys
    commands = text_of(site / "reference" / "command_line.html")
    for name in ("run", "evaluate", "serve", "request", "score", "compare", "clean", "compile"):
        assert f"verbatim {name}" in commands
    import keras_models.heads
    import keras_models.layers
    import keras_models.models

    pages = {
        "layers": keras_models.layers,
        "heads": keras_models.heads,
        "models": keras_models.models,
    }
    for page, module in pages.items():
        text = text_of(site / "reference" / "api" / f"{page}.html")
        ours = module.__name__.split(".")[0]
        names = [
            name
            for name, value in vars(module).items()
            if inspect.isclass(value) and value.__module__.startswith(ours)
        ]
        assert len(names) > 2
        for name in names:
            if not name.startswith("_"):
                assert re.search(rf"\b{name}\b", text), (page, name)


def test_the_front_page_leads_to_every_head(site):
    from keras_models.heads import HEADS

    front = (site / "index.html").read_text(encoding="utf-8")
    link = r'<a href="(reference/api/\w+\.html)#([\w.]+)"><code>(\w+)</code></a>'
    links = re.findall(link, front)
    assert {name for _, _, name in links} >= {head.__name__ for head in HEADS.values()}
    for page, anchor, name in links:
        assert anchor.endswith(f".{name}")
        assert f'id="{anchor}"' in (site / page).read_text(encoding="utf-8"), anchor


def test_code_and_headings_are_not_made_links(site):
    page = (site / "guides" / "own_head.html").read_text(encoding="utf-8")
    assert re.search(r'#keras_models\.heads\.CopyHead"><code>CopyHead</code></a>', page)
    for block in re.findall(r"<pre>.*?</pre>|<h[1-6].*?</h[1-6]>", page, flags=re.DOTALL):
        assert "reference/api" not in block


def test_the_site_has_the_clients(site):
    text = text_of(site / "reference" / "api" / "client.html")
    for name in ("TextModel", "Client", "AsyncClient", "Model", "Answer", "Token", "Score"):
        assert re.search(rf"\b{name}\b", text), name


def test_the_site_has_the_tutorial_with_what_it_printed(site):
    text = text_of(site / "tutorial.html")
    assert "client.predict(questions)" in text
    assert "%(zebra_title)s?  ->  Supprimer la page %(zebra_title)s ?" in text
    assert "%%bash" not in text


def test_the_site_has_the_examples(site):
    """Links to a script lead to the page that shows it."""
    guide = (site / "guides" / "layers.html").read_text(encoding="utf-8")
    shown = (site / "guides" / "examples.html").read_text(encoding="utf-8")
    scripts = sorted((ROOT / "examples").glob("*.py"))
    for path in scripts:
        anchor = f"{path.stem}py"
        assert f'href="examples.html#{anchor}"' in guide, path
        assert f'id="{anchor}"' in shown, path
    assert len(scripts) >= 6
    assert "Quxodyne2000" in text_of(site / "keras_hub.html")


def test_no_page_asks_another_site(site):
    """Everything that a browser loads by itself is there."""
    for page in site.rglob("*.html"):
        found = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|link)[^>]*?(?:src|href)="([^"]+)"', found)
        assert not [one for one in loaded if "://" in one], page
