"""What recipes add to the graph, through training, export and serving: tags, lexicons, translations, span labels."""

import dataclasses
import itertools
import os

import numpy as np
import pytest

from pipeline import configs

pytestmark = pytest.mark.slow

CITIES = ["denver", "boston", "montreal canada", "tampa", "oslo", "lima", "cairo", "quito"]
LEXICON = "".join(f"{city} :- NP : {city.split()[0]}:ci\n" for city in CITIES)
TINY = {
    "training": {
        "epochs": 30,
        "batch_tokens": 256,
        "learning_rate": 0.02,
        "warmup_steps": 5,
        "bucket_lengths": [16],
    },
    "model": {"hidden_size": 24, "embedding_size": 16, "dropout": 0.0, "coverage": False},
    "decoding": {"beam_size": 2, "n_best": 2, "batch_buckets": [4], "length_buckets": [8, 16]},
    "data": {"tokenization": "whitespace", "max_tokens": 12},
}


def make_recipe(**sections):
    tree = {section: {**TINY.get(section, {}), **sections.get(section, {})} for section in (*TINY, *sections)}
    return configs.recipe_from_dict({"name": "tiny", **tree})


def trained(folder, recipe, rows, source_words, target_words):
    """Trains and exports a recipe on rows of strings: source, target and tags; returns a `ServedModel`."""
    import tensorflow as tf
    import tensorflow_transform as tft
    import tensorflow_transform.beam as tft_beam
    from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

    from components.vocabulary import executor
    from pipeline import pointer_labels, preprocessing, source_features, tokenization, trainer
    from pipeline.served_model import ServedModel
    from serving import export

    settings = configs.vocabulary_settings(recipe)
    columns = recipe.data.source_features
    entities = [pointer_labels.entity_name(number + 1) for number in range(settings.get("entities", 0))]
    files = {
        preprocessing.SOURCE_VOCABULARY_FILE: [*tokenization.SPECIAL_TOKENS, *source_words, *entities],
        preprocessing.TARGET_VOCABULARY_FILE: [*tokenization.SPECIAL_TOKENS, *target_words],
    }
    for place, name in enumerate(columns):
        tags = sorted({tag for row in rows for tag in row[2 + place].split()})
        files[source_features.tags_file(name)] = [*source_features.TAG_SPECIALS, *tags]
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    executor.write_lexicons(str(folder), settings, tokenization.Tokenizer.of(recipe.data))

    names = ("source", "target", *columns)
    spec = {name: tf.io.FixedLenFeature([1], tf.string) for name in names}
    metadata = dataset_metadata.DatasetMetadata(schema_utils.schema_from_feature_spec(spec))
    config = {**configs.transform_settings(recipe), "vocabulary_uri": str(folder)}
    raw = [{name: [text.encode()] for name, text in zip(names, row)} for row in rows]
    with tft_beam.Context(temp_dir=str(folder / "tmp")):
        transform_fn = (raw, metadata) | tft_beam.AnalyzeDataset(
            lambda inputs: preprocessing.preprocessing_fn(inputs, config)
        )
        _ = transform_fn | tft_beam.WriteTransformFn(str(folder / "transform"))
    output = tft.TFTransformOutput(str(folder / "transform"))
    made = output.transform_features_layer()(
        {name: tf.constant([[row[place]] for row in rows]) for place, name in enumerate(names)}
    )
    made = {name: tf.RaggedTensor.from_sparse(value).to_list() for name, value in made.items()}
    path = str(folder / "examples.gz")
    with tf.io.TFRecordWriter(path, options="GZIP") as writer:
        for number in range(len(rows)):
            feature = {}
            for name, values in made.items():
                value = values[number]
                if name in ("source_tokens", "source_copy_tokens"):
                    feature[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=value))
                else:
                    feature[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=value))
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    sizes = [len(files[name]) for name in (preprocessing.SOURCE_VOCABULARY_FILE, preprocessing.TARGET_VOCABULARY_FILE)]
    features = preprocessing.encoder_feature_sizes(output, recipe)
    model, _ = trainer.train(recipe, [path], [path], *sizes, source_features=features)
    export.export_model(model, output, recipe, str(folder / "model"))
    return ServedModel(folder / "model")


def test_tags_and_a_copy_lexicon_reach_the_served_model(tmp_path):
    """A phrase's entity is written by a copy of its first token; the answer names the token; tags say which city."""
    (tmp_path / "lexicon.txt").write_text(LEXICON, "utf-8")
    recipe = make_recipe(
        data={
            "source_features": ["answer"],
            "surface_features": ["case"],
            "copy_lexicon": str(tmp_path / "lexicon.txt"),
        },
        model={"head": "joint_copy"},
    )

    def row(first, second, chosen):
        words = ["fly", "from", *first.split(), "to", *second.split()]
        city = (first, second)[chosen].split()
        start = 2 if chosen == 0 else 3 + len(first.split())
        tags = ["A" if start <= place < start + len(city) else "O" for place in range(len(words))]
        return " ".join(words), f"city {city[0]}:_ci", " ".join(tags)

    rows = [row(*cities, chosen) for cities in itertools.permutations(CITIES[:6], 2) for chosen in (0, 1)]
    model = trained(tmp_path, recipe, rows, ["fly", "from", "to"], ["city"])
    asked = [row("cairo", "montreal canada", 1), row("quito", "cairo", 0), row("montreal canada", "quito", 1)]
    answers = model.predict([source for source, _, _ in asked], features={"answer": [tags for _, _, tags in asked]})
    assert [answer["text"] for answer in answers] == [target for _, target, _ in asked]
    assert answers[0]["copied_from"] == [-1, 4]
    assert answers[0]["source_tokens"] == ["fly", "from", "cairo", "to", "montreal", "canada"]
    log_probability, count = model.score([asked[0][0]], [asked[0][1]], {"answer": [asked[0][2]]})
    other, _ = model.score([asked[0][0]], ["city cairo:_ci"], {"answer": [asked[0][2]]})
    assert count.tolist() == [3] and log_probability[0] > other[0] > -1e6
    explained = model.predict([asked[0][0]], signature="explain", features={"answer": [asked[0][2]]})[0]
    assert np.shape(explained["attention"]) == (2, 6)

    from pipeline.served_model import ModelError

    with pytest.raises(ModelError, match="takes tags of answer; got none"):
        model.predict([asked[0][0]])
    with pytest.raises(
        ModelError, match="source text 0 has 4 tokens and 1 tags of answer; give one tag for each token"
    ):
        model.predict(["fly from oslo now"], features={"answer": ["A"]})

    # Over gRPC, and what the warm-up sends.
    from serving.client import Client, RequestError
    from serving.server import ModelServer

    versions = tmp_path / "versions"
    versions.mkdir()
    os.rename(tmp_path / "model", versions / "1")
    with ModelServer({"tiny": str(versions)}, port=0) as server, Client(server.address) as client:
        (answer,) = client.predict(asked[1][0], features={"answer": asked[1][2]})
        assert answer.text == asked[1][1]
        assert client.n_best(asked[1][0], features={"answer": [asked[1][2]]})[0][0].text == asked[1][1]
        assert client.score(asked[1][0], asked[1][1], features={"answer": asked[1][2]})[0].token_count == 3
        with pytest.raises(RequestError, match="answer"):
            client.predict(asked[1][0])


WORDS = {"house": "maison", "water": "eau", "bread": "pain", "stone": "pierre", "tree": "arbre", "wine": "vin"}


def dictionary_rows():
    pairs = itertools.permutations(list(WORDS), 2)
    return [(f"see {a} and {b} %s", f"voir {WORDS[a]} et {WORDS[b]} %s") for a, b in pairs]


@pytest.mark.parametrize("head", ["pointer_softmax", "softmax"])
def test_a_dictionary_writes_what_is_copied_or_unknown(tmp_path, head):
    (tmp_path / "dictionary.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in WORDS.items()), "utf-8")
    recipe = make_recipe(
        data={"dictionary": str(tmp_path / "dictionary.tsv")},
        model={"head": head, "pointers": "dictionary" if head == "pointer_softmax" else "unknown"},
        decoding={"replace_unknown": "dictionary"},
    )
    held_out = ("see stone and wine %s", "voir pierre et vin %s")
    rows = [row for row in dictionary_rows() if row != held_out]
    # The network sees every source word and none of their translations.
    model = trained(tmp_path, recipe, rows, ["see", "and", *WORDS], ["voir", "et", "%s"])
    (answer,) = model.predict([held_out[0]])
    assert answer["tokens"][-1] == "%s" and answer["text"].count("%s") == 1
    if head == "pointer_softmax":
        assert answer["text"] == held_out[1]
        assert answer["copied_from"][1] == 1 and answer["copied_from"][3] == 3
    # Where attention lies a softmax model has not been taught; what stands there is translated, the placeholder never.
    written = {"voir", "et", "%s", "see", "and", *WORDS.values()}
    assert set(answer["tokens"]) <= written


def test_a_translation_needs_a_head_whose_copies_are_translations():
    with pytest.raises(configs.RecipeError, match="'decoding.replace_unknown'.*would translate all that is copied"):
        make_recipe(data={"dictionary": "d.tsv"}, decoding={"replace_unknown": "dictionary"})
    recipe = make_recipe(model={"head": "softmax"}, decoding={"replace_unknown": "copy"})
    assert dataclasses.replace(recipe, name="other").decoding.replace_unknown == "copy"


def test_spans_are_learnt_and_entities_pointed_at(tmp_path):
    names = ["Ann Lee", "Bob Ray", "Cleo Fox", "Dan Poe", "Eve Kay", "Flo Zed"]

    def row(first, second):
        source = f"ask {first} about {second}"
        tags = ["B-PER" if word[0].isupper() else "O" for word in source.split()]
        return source, f"{second} knows {first}", " ".join(tags)

    rows = [row(*pair) for pair in itertools.permutations(names[:5], 2)]
    words = [word for name in names for word in name.split()]
    asked = row("Flo Zed", "Ann Lee")
    (tmp_path / "spans").mkdir()
    recipe = make_recipe(data={"source_features": ["ner"]}, model={"head": "span_copy", "max_span": 2})
    model = trained(tmp_path / "spans", recipe, rows, ["ask", "about"], ["knows"])
    (answer,) = model.predict([asked[0]], features={"ner": [asked[2]]})
    assert answer["text"] == asked[1] and answer["copied_from"] == [4, 5, -1, 1, 2]

    (tmp_path / "entities").mkdir()
    recipe = make_recipe(
        data={"source_features": ["ner"]},
        model={"head": "pointer_softmax", "pointers": "entities", "entity_feature": "ner"},
    )
    # The vocabulary has every name, and yet they are copied; the encoder reads them as ids, so new names are like old ones.
    model = trained(tmp_path / "entities", recipe, rows, ["ask", "about"], ["knows", *words])
    (answer,) = model.predict([asked[0]], features={"ner": [asked[2]]})
    assert answer["text"] == asked[1] and answer["copied_from"] == [4, 5, -1, 1, 2]
