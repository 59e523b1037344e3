"""A model that finds words:
from texts without spaces, through training and export, to its words in the answer.
"""

import json

import pytest

from tests.pipeline.export.tiny_models import export_tiny, make_recipe

pytestmark = pytest.mark.slow

WORDS = {
    "みず": "water",
    "山": "mountain",
    "パン": "bread",
    "ねこ": "cat",
    "川": "river",
    "テレビ": "set",
}


def test_its_words_are_found_served_and_scored(tmp_path, capsys):
    """Runs of one script are the words here;
    imitation teaches them, so that texts never seen are cut right.
    """
    from pipeline.commands import main
    from pipeline.export.served_model import ServedModel

    names = list(WORDS)
    # Neighbours are of different scripts.
    triples = [
        (a, b, c)
        for a in names
        for b in names
        for c in names
        if ord(a[0]) >> 5 != ord(b[0]) >> 5 != ord(c[0]) >> 5
    ]
    rows = [("".join(words), " ".join(WORDS[word] for word in words)) for words in triples]
    held_out, rows = rows[::7], [row for number, row in enumerate(rows) if number % 7]
    ours = {"word_buckets": 1009, "detached": True}
    imitates = {"warm_up": "script", "warm_up_updates": 10**6, "samples": 2, "baseline": "samples"}
    recipe = make_recipe(
        data={"source_tokenization": "characters"},
        model={"head": "softmax", "encoder": "segmenting"},
        segmentation={**ours, **imitates},
        training={"epochs": 40},
        decoding={"batch_buckets": [4], "length_buckets": [12]},
    )
    characters = sorted({character for word in names for character in word})
    signatures = ("serving_default", "explain", "score")
    folder = export_tiny(tmp_path, recipe, rows, characters, list(WORDS.values()), signatures)
    model = ServedModel(folder)
    sources = [source for source, _ in held_out]
    answers = model.predict(sources)
    cut = {"".join(words): list(words) for words in triples}
    assert [answer["source_tokens"] for answer in answers] == [cut[source] for source in sources]
    right = sum(answer["text"] == target for answer, (_, target) in zip(answers, held_out))
    assert right >= 0.8 * len(held_out)
    explained = model.predict(sources[:1], signature="explain")[0]
    assert explained["source_tokens"] == cut[sources[0]]
    for row in explained["attention"]:  # over the words found
        assert len(row) == 3 and sum(row) == pytest.approx(1, abs=1e-3)

    text, scores = tmp_path / "text", tmp_path / "scores.json"
    lines = [" ".join(cut[source]) for source in sources]
    lines.insert(1, "")
    text.write_text("".join(line + "\n" for line in lines), "utf-8")
    capsys.readouterr()  # what the training said
    assert main.main(["segment", "--model", str(folder), str(text), "--json", str(scores)]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == lines
    assert (
        "F1 of words 100.0 %" in printed.err and f"1 of {len(lines)} lines are empty" in printed.err
    )
    assert json.loads(scores.read_text("utf-8"))["scores"]["word_f1"] == 1.0
