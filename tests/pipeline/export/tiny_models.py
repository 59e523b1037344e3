"""Tiny recipes, exported for the tests of served models."""

import collections

from pipeline.recipes import views
from pipeline.recipes.recipe import recipe_from_dict

# A batch's search with a beam has two loops, each traced and compiled: for all sources, and for
# those that run longer.
BEAM = {"beam_size": 2, "n_best": 2}
TINY = {
    "training": {
        "epochs": 30,
        "batch_tokens": 256,
        "learning_rate": 0.02,
        "warmup_steps": 5,
        "bucket_lengths": [16],
    },
    "model": {"hidden_size": 24, "embedding_size": 16, "dropout": 0.0, "coverage": False},
    "decoding": {"beam_size": 1, "n_best": 1, "batch_buckets": [4], "length_buckets": [16]},
    "data": {"tokenization": "whitespace", "max_tokens": 12},
}


def make_recipe(**sections):
    tree = {
        section: {**TINY.get(section, {}), **sections.get(section, {})}
        for section in (*TINY, *sections)
    }
    return recipe_from_dict({"name": "tiny", **tree})


def trained(*arguments):
    """Trains and exports a recipe, as `export_tiny` does; returns a `ServedModel`."""
    from pipeline.export.served_model import ServedModel

    return ServedModel(export_tiny(*arguments))


def export_tiny(
    folder, recipe, rows, source_words, target_words, signatures=None, lexicon=None, train=True
):
    """Exports a recipe's model of rows of strings, source, target and tags;
    `lexicon` is what Lexicon would have found.

    Args:
        train: whether it learns the rows first. If not, its weights are the first ones.

    Returns:
        `folder / "model"`, which holds the given signatures, all by default.
    """
    from pipeline.export import seq2seq_export
    from pipeline.training import trainer
    from pipeline.training.model_inputs import ModelInputs
    from pipeline.training.training_inputs import TrainingInputs

    output = transform_tiny(folder, recipe, rows, source_words, target_words, lexicon)
    if train:
        inputs = ModelInputs.of(recipe, output)
        path = str(folder / "examples.gz")
        names = ("source", "target", *recipe.data.source_features)
        write_examples(path, output, rows, names, "pairs.tsv" if recipe.data.term_share else "")
        model, _ = trainer.train(recipe, TrainingInputs([path], [path], inputs))
    else:
        model = untrained(recipe, output)
    seq2seq_export.export_model(
        model, output, recipe, str(folder / "model"), signatures or seq2seq_export.SIGNATURES
    )
    return folder / "model"


def untrained(recipe, transform_output):
    """Returns a recipe's network with its first weights: the same in every process, as training
    does.
    """
    import keras

    from pipeline.training.model_building import build_model
    from pipeline.training.model_inputs import ModelInputs

    keras.utils.set_random_seed(recipe.training.seed)
    return build_model(recipe, ModelInputs.of(recipe, transform_output))


def transform_tiny(folder, recipe, rows, source_words, target_words, lexicon=None):
    """Writes the Transform graph of a recipe, as `export_tiny` does; returns the
    `TFTransformOutput`.
    """
    import tensorflow as tf
    import tensorflow_transform as tft
    import tensorflow_transform.beam as tft_beam
    from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

    from pipeline.features import pointer_labels, preprocessing, source_features, vocabulary_files
    from pipeline.lexicons import translation_lexicon
    from pipeline.text import characters, tokenization

    settings = views.vocabulary_settings(recipe)
    if recipe.data.units != "words":
        source_words, target_words = _write_units(folder, recipe, rows)
    columns = recipe.data.source_features
    entities = [
        pointer_labels.entity_name(number + 1) for number in range(settings.get("entities", 0))
    ]
    specials = tokenization.CLASS_TOKENS if recipe.data.term_share else tokenization.SPECIAL_TOKENS
    files = {
        vocabulary_files.SOURCE_VOCABULARY_FILE: [
            *specials,
            *source_words,
            *entities,
        ],
        vocabulary_files.TARGET_VOCABULARY_FILE: [*specials, *target_words],
    }
    for place, name in enumerate(columns):
        tags = sorted({tag for row in rows for tag in row[2 + place].split()})
        files[source_features.tags_file(name)] = [*source_features.TAG_SPECIALS, *tags]
    if views.composes(recipe):
        counts = characters.count(
            dict.fromkeys((word for row in rows for word in row[0].split()), 1)
        )
        files[characters.CHARACTERS_FILE] = characters.choose(counts, 100, 1)
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    vocabulary_files.write_lexicons(str(folder), settings, tokenization.Tokenizer.of(recipe.data))

    names = ("source", "target", *columns)
    spec = {name: tf.io.FixedLenFeature([1], tf.string) for name in names}
    # As in a pipeline, the graph has inputs that no served text has.
    spec["line"] = tf.io.FixedLenFeature([1], tf.int64)
    spec["file"] = tf.io.FixedLenFeature([1], tf.string)
    metadata = dataset_metadata.DatasetMetadata(schema_utils.schema_from_feature_spec(spec))
    config = {
        **views.transform_settings(recipe),
        **dict.fromkeys(("vocabulary_uri", "lexicon_uri", "subwords_uri"), str(folder)),
    }
    if lexicon:
        translation_lexicon.write(str(folder), lexicon, {})
    raw = [
        {
            **{name: [text.encode()] for name, text in zip(names, row)},
            "line": [1],
            "file": [b"pairs.tsv"],
        }
        for row in rows
    ]
    with tft_beam.Context(temp_dir=str(folder / "tmp")):
        transform_fn = (raw, metadata) | tft_beam.AnalyzeDataset(
            lambda inputs: preprocessing.preprocessing_fn(inputs, config)
        )
        _ = transform_fn | tft_beam.WriteTransformFn(str(folder / "transform"))
    return tft.TFTransformOutput(str(folder / "transform"))


def _write_units(folder, recipe, rows):
    """Learns what words are cut into, one model for both sides or one each;
    returns the units of either side's vocabulary.
    """
    from components.subwords.executor import train
    from pipeline.features.vocabulary_choice import choose_units
    from pipeline.text import tokenization, units

    if recipe.data.units == "preset":
        return _write_preset_units(folder, recipe, rows)
    sides = [" ".join(row[side] for row in rows) for side in (0, 1)]
    if recipe.vocabulary.joint:
        sides = [" ".join(sides)] * 2
    chosen = []
    for side, text in zip(("source", "target"), sides):
        model = train(
            collections.Counter(text.split()), recipe.data.units, recipe.vocabulary.pieces
        )
        (folder / units.MODEL_FILES[side]).write_bytes(model)
        chosen.append(choose_units({}, model, 1)[len(tokenization.SPECIAL_TOKENS) :])
    return chosen


def _write_preset_units(folder, recipe, rows):
    """Writes the model of a preset's tokenizer; returns the units of either side's vocabulary."""
    import tensorflow as tf

    from pipeline.features.vocabulary_choice import choose_side
    from pipeline.text import presets, tokenization, units

    model = presets.PresetTokens.read(recipe.model.preset).cutting_model()
    settings, chosen = views.vocabulary_settings(recipe), []
    for place, side in enumerate(("source", "target")):
        (folder / units.MODEL_FILES[side]).write_bytes(model)
        cutter = units.tokenizer_of(settings, str(folder), side)
        made = cutter.tokenize(tf.constant([row[place] for row in rows])).flat_values.numpy()
        counts = collections.Counter(unit.decode() for unit in made)
        tokens = choose_side(side, counts, recipe.vocabulary, settings, str(folder))
        chosen.append(tokens[len(tokenization.SPECIAL_TOKENS) :])
    return chosen


def write_examples(path, output, rows, names, file=""):
    """Writes the transformed examples of rows whose columns have these names, as of a file."""
    import tensorflow as tf

    from pipeline.export import transform_graph

    columns_of_rows = {
        name: tf.constant([[row[place]] for row in rows]) for place, name in enumerate(names)
    }
    columns_of_rows["file"] = tf.fill([len(rows), 1], file)
    made = transform_graph.TransformGraph(output)(columns_of_rows)
    made = {name: tf.RaggedTensor.from_sparse(value).to_list() for name, value in made.items()}
    with tf.io.TFRecordWriter(path, options="GZIP") as writer:
        for number in range(len(rows)):
            feature = {}
            for name, values in made.items():
                value = values[number]
                if value and isinstance(value[0], bytes):
                    feature[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=value))
                else:
                    feature[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=value))
            writer.write(
                tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
            )


def warmup_signatures(folder):
    """Returns the signatures that an exported model's warm-up requests ask for, in their order."""
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2

    from pipeline.export import extra_files

    records = tf.data.TFRecordDataset(
        str(folder / extra_files.EXTRA_DIRECTORY / extra_files.WARMUP_FILE)
    ).as_numpy_iterator()
    logs = map(prediction_log_pb2.PredictionLog.FromString, records)
    return [log.predict_log.request.model_spec.signature_name for log in logs]
