"""A served model of subwords copies words whole, compiled and not."""

import pytest

from pipeline.text import units
from tests.pipeline.export.tiny_models import export_tiny, make_recipe

pytestmark = pytest.mark.slow

ROWS = [("greet ada and bob", "ada and bob"), ("greet cleo", "cleo")]
SOURCES = ["greet zanzibar, iowa and mississippi", "ada greet nobody", "x"]


def test_begun_words_are_whole(tmp_path):
    from pipeline.export.served_model import ServedModel

    recipe = make_recipe(
        data={"units": "subwords", "tokenization": "text"},
        vocabulary={"joint": True, "pieces": 300},
        training={"bucket_lengths": [96]},
        decoding={
            "length_buckets": [48],
            "batch_buckets": [4],
            "beam_size": 2,
            "n_best": 2,
            "min_length": 8,
            "pass_through": False,
            "copy_whole_words": True,
            "max_piece_repeats": 2,
        },
    )
    # Few pieces are words of the vocabulary: the others can only be copied.
    folder = export_tiny(
        tmp_path,
        recipe,
        ROWS,
        ["greet", "and"],
        ["and"],
        ("serving_default", "serving_default_no_xla"),
        train=False,
    )
    model = ServedModel(folder)
    answers = model.predict(SOURCES)
    begun = 0
    for answer in answers:
        source, origins = answer["source_tokens"], answer["copied_from"]
        for place, position in enumerate(origins[:-1]):
            if position < 0 or units.continues(source[position]):
                continue
            word = [position]
            while word[-1] + 1 < len(source) and units.continues(source[word[-1] + 1]):
                word.append(word[-1] + 1)
            copied = origins[place : place + len(word)]
            assert copied == word[: len(copied)], (answer["tokens"], origins)
            begun += len(word) > 1
    assert begun
