"""First vectors of words, from files of other programs."""

import gzip
import json

import numpy as np
import pytest

from pipeline.lexicons import pretrained_vectors
from pipeline.lexicons.pretrained_vectors import PretrainedVectors
from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe import recipe_from_dict

WORDS = ["[PAD]", "[UNK]", "the", "house", "café", "rare"]
VECTORS = {"house": [1.0, -2.0, 0.5], "café": [0.25, 3.0, -1.0], "other": [9.0, 9.0, 9.0]}


def recipe(path, size=3, key="source_vectors"):
    return recipe_from_dict(
        {"name": "x", "model": {key: str(path), "embedding_size": size, "encoder": "cnn"}}
    )


def text(vectors, header):
    lines = [f"{len(vectors)} 3"] if header else []
    lines += [f"{word} {' '.join(map(str, values))}" for word, values in vectors.items()]
    return "\n".join([*lines, ""]).encode()


def binary(vectors, line_feeds):
    content = f"{len(vectors)} 3\n".encode()
    for word, values in vectors.items():
        content += word.encode() + b" " + np.array(values, "<f4").tobytes() + b"\n" * line_feeds
    return content


@pytest.mark.parametrize(
    "name, content",
    [
        ("glove.txt", text(VECTORS, header=False)),
        ("vectors.vec", text(VECTORS, header=True)),
        ("spaces.txt", text({"of the": [1.0, 1.0, 1.0], **VECTORS}, header=True)),
        ("spaced.txt", text(VECTORS, header=False).replace(b"\n", b" \r\n")),
        ("vectors.bin", binary(VECTORS, 0)),
        ("lines.bin", binary(VECTORS, 1)),
        ("twice.txt", text(VECTORS, False) + text({"house": [7.0, 7.0, 7.0]}, False)),
        ("zipped.bin.gz", gzip.compress(binary(VECTORS, 0), mtime=0)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_format_gives_the_same_vectors(tmp_path, caplog, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    pretrained_vectors.check(recipe(path))
    with caplog.at_level("INFO"):
        found = PretrainedVectors.read(recipe(path), "source_vectors", WORDS)
    np.testing.assert_array_equal(found.ids, [3, 4])
    np.testing.assert_array_equal(found.values, [VECTORS["house"], VECTORS["café"]])
    assert found.values.dtype == np.float32
    assert f"2 of 6 entries of the source vocabulary start with a vector of {path}." in caplog.text


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("x.txt", text(VECTORS, True).replace(b"3 3", b"4 3"), "3 of the 4 vectors that its first"),
        ("x.txt", text(VECTORS, False)[:-10], "on line 3: it is damaged or ends early"),
        ("x.bin", binary(VECTORS, 0)[:-1], "ends early: it has 2 of the 3 vectors"),
        ("x.bin", b"house 1 2 3\n", "does not begin with the number of its words"),
        ("x.bin.gz", gzip.compress(binary(VECTORS, 0), mtime=0)[:-12], "cannot be read"),
        ("x.txt", text(VECTORS, False).replace(b"0.5", b"half"), "beside 'house' that are not"),
        ("x.txt", b"", "is empty"),
        ("x.txt", b"cat 1 2 3\n", "no vector for any of the 6 entries"),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(RecipeError, match="model.source_vectors") as caught:
        PretrainedVectors.read(recipe(path), "source_vectors", WORDS)
    assert words in str(caught.value) and str(path) in str(caught.value)


@pytest.mark.parametrize(
    "name, content", [("x.txt", text(VECTORS, False)), ("x.bin", binary(VECTORS, 0))]
)
def test_sizes_and_places_are_checked_before_anything_runs(tmp_path, name, content):
    path = tmp_path / name
    with pytest.raises(RecipeError, match="cannot be read"):
        pretrained_vectors.check(recipe(path, key="target_vectors"))
    path.write_bytes(content)
    with pytest.raises(RecipeError, match="set 'model.embedding_size' to 3"):
        pretrained_vectors.check(recipe(path, size=4, key="target_vectors"))


def test_other_vectors_in_the_same_file_train_a_model_again(tmp_path):
    from pipeline import graph
    from pipeline.recipes.loading import load_recipe

    path = tmp_path / "vectors.txt"

    def made():
        changed = load_recipe("localization_en_fr", [f"model.source_vectors={path}"])
        settings = graph.PipelineSettings("p", "root", "models")
        pipeline = graph.create_pipeline(changed, "x.tsv", settings)
        (trainer,) = (part for part in pipeline.components if part.id == "Trainer")
        return json.loads(trainer.exec_properties["custom_config"])

    # A pipeline may be written where its files are not.
    assert "word_vectors" not in made()
    path.write_text("a 1 2 3\n")
    first = made()["word_vectors"]
    assert made()["word_vectors"] == first
    path.write_text("a 1 2 4\n")
    assert made()["word_vectors"] != first
