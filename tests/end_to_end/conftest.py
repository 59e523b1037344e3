"""One small run of the whole pipeline, shared by the end-to-end tests."""

import io
import itertools
import random

import pytest

from pipeline.recipes import loading

VERBS = {
    "Delete": "Supprimer",
    "Open": "Ouvrir",
    "Close": "Fermer",
    "Move": "Déplacer",
    "Copy": "Copier",
}
NOUNS = {
    "page": "la page",
    "file": "le fichier",
    "folder": "le dossier",
    "image": "l'image",
    "site": "le site",
}
ENDS = {"": "", " now": " maintenant", "!": " !"}
OVERRIDES = (
    "training.epochs=6",
    "training.max_seconds=0",
    "training.batch_tokens=256",
    "training.learning_rate=0.01",
    "training.warmup_steps=10",
    "model.hidden_size=32",
    "model.embedding_size=32",
    "vocabulary.protected_min_count=100",
    "decoding.beam_size=2",
    "decoding.n_best=2",
    "decoding.batch_buckets=[1, 4]",
    "decoding.length_buckets=[8, 16]",
    "evaluation.bootstrap_samples=50",
    "data.format=tsv",
    "lexicon.kind=learned",
    "data.max_tokens=16",
    "data.max_rejected_share=0.5",
)


def made_pairs():
    """A small language of interface strings, each with a placeholder of its own."""
    rows = []
    for index, (verb, noun, end) in enumerate(itertools.product(VERBS, NOUNS, ENDS)):
        for copy in range(6):
            name = f"%(item_{index}_{copy})s"
            rows.append(
                (f"{verb} {noun} {name}{end}", f"{VERBS[verb]} {NOUNS[noun]} {name}{ENDS[end]}")
            )
    random.Random(1).shuffle(rows)
    return rows


@pytest.fixture(scope="session")
def data_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "pairs.tsv"
    lines = [f"{source}\t{target}" for source, target in made_pairs()]
    lines += [
        "word " * 17 + "\ttoo long",
        "only one column",
        "\tempty source",
        "empty target\t",
        lines[0],
    ]
    path.write_bytes("\n".join(["source\ttarget", *lines]).encode() + b"\nbad \xff byte\tx\n")
    return path


@pytest.fixture(scope="session")
def recipe():
    return loading.load_recipe("localization_en_fr", OVERRIDES)


@pytest.fixture(scope="session")
def finished_run(data_file, recipe, tmp_path_factory):
    """The facts of a run, and what it said on the way."""
    from pipeline.commands import progress_display
    from pipeline.runners import local_runner

    said = io.StringIO()
    with progress_display.shown_on(said):
        facts = local_runner.run(recipe, str(data_file), tmp_path_factory.mktemp("run"))
    return facts, said.getvalue().splitlines()
