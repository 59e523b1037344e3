"""Our model of the job's sizes: its recipe, its Transform graph, its SavedModel, its examples.

These are what a run of the pipeline would make of the same words, without ingestion and training:
quality does not matter for speed.
"""

import collections
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from benchmarks.peers import corpus
from benchmarks.peers.job import Job
from components.lexicon.executor import to_words
from pipeline.features import preprocessing, transform_assets, vocabulary_files
from pipeline.lexicons import translation_lexicon, word_alignment
from pipeline.lexicons.links import make_links
from pipeline.recipes import loading, views
from pipeline.recipes.choices import LEXICON_HEADS
from pipeline.recipes.recipe import Recipe
from pipeline.recipes.sections import LexiconConfig
from pipeline.recipes.settings import TransformConfig
from pipeline.text import tokenization

if TYPE_CHECKING:
    import tensorflow_transform as tft


def recipe(
    job: Job,
    shortlist: int = 0,
    forced: bool = True,
    overrides: Mapping[str, object] | None = None,
) -> Recipe:
    """Returns the `Recipe` of the job.

    Args:
        job: the sizes.
        shortlist: how many words it chooses among when it decodes, 0 for all.
        forced: whether outputs have exactly `job.length` tokens, rather than up to `job.longest`.
        overrides: values of other keys.
    """
    values: dict[str, object] = {
        "data.tokenization": "whitespace",
        "data.target_language": "ja",
        "data.max_tokens": job.source_buckets[-1],
        "vocabulary.source_size": job.vocabulary,
        "vocabulary.target_size": job.vocabulary,
        "vocabulary.min_count": 1,
        "model.body": job.body,
        "model.head": "pointer_generator" if job.body == "rnn" else "softmax",
        "model.attention": job.attention,
        "model.coverage": "false",
        "model.embedding_size": job.embedding,
        "model.hidden_size": job.hidden,
        # Like the peer's: the same rate from the first update to the last.
        "training.learning_rate": job.learning_rate,
        "training.warmup_steps": 0,
        "training.final_learning_rate_share": 1.0,
        "training.bucket_lengths": [8, 10, 12, 14, 16, job.source_buckets[-1] + 8],
        "decoding.beam_size": job.beam,
        "decoding.n_best": 1,
        "decoding.batch_buckets": list(job.batches),
        "decoding.length_buckets": list(job.source_buckets),
        "decoding.max_length_factor": 0.0,
        "decoding.max_length_offset": job.length if forced else job.longest,
        "decoding.min_length": job.length if forced else 0,
        "decoding.keep_protected": "false",
        "decoding.shortlist_size": shortlist,
        "lexicon.kind": "learned" if shortlist else "none",
    }
    if job.body == "rnn":
        # The initial weights are the peer's, too.
        values |= {"model.initial_range": 0.1}
    else:
        values |= {
            "model.initial_range": 0.0,
            "model.encoder_layers": job.layers,
            "model.decoder_layers": job.layers,
            "model.attention_heads": job.heads,
            "model.feed_forward_size": job.feed_forward,
            # Where the peers have it, too.
            "model.attention_dropout": 0.2,
            "model.feed_forward_dropout": 0.2,
            # The baseline is not trained, but must fit.
            "baseline.head": "",
        }
    # Like the peers', whatever the recipe has.
    values |= {
        "model.dropout": 0.2,
        "training.label_smoothing": 0.0,
        "training.select_by": "loss",
    }
    values |= overrides or {}
    settings = [
        f"{key}={value if isinstance(value, str) else json.dumps(value)}"
        for key, value in values.items()
    ]
    return loading.load_recipe("translation_en_ja", settings)


def write_graph(
    recipe: Recipe, pairs: Sequence[corpus.Pair], folder: str | pathlib.Path
) -> "tft.TFTransformOutput":
    """Writes vocabularies of the pairs and the Transform graph of the recipe."""
    import tensorflow as tf
    import tensorflow_transform as tft
    import tensorflow_transform.beam as tft_beam
    from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    names = (vocabulary_files.SOURCE_VOCABULARY_FILE, vocabulary_files.TARGET_VOCABULARY_FILE)
    sizes = (recipe.vocabulary.source_size, recipe.vocabulary.target_size)
    for name, size, lines in zip(names, sizes, zip(*pairs)):
        specials = tokenization.SPECIAL_TOKENS
        words = [*specials, *corpus.frequent_words(lines, size - len(specials))]
        (folder / name).write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    vocabulary_files.write_lexicons(
        str(folder), views.vocabulary_settings(recipe), tokenization.Tokenizer.of(recipe.data)
    )
    spec = {name: tf.io.FixedLenFeature([1], tf.string) for name in ("source", "target")}
    metadata = dataset_metadata.DatasetMetadata(schema_utils.schema_from_feature_spec(spec))
    if views.reads_lexicon(recipe):
        translation_lexicon.write(str(folder), learn_lexicon(recipe.lexicon, pairs), {})
    settings = cast(TransformConfig, views.transform_settings(recipe))
    settings["vocabulary_uri"] = settings["lexicon_uri"] = str(folder)
    # Nothing of the graph depends on the data: one pair stands for all.
    raw = [{"source": [pairs[0][0].encode()], "target": [pairs[0][1].encode()]}]
    with tft_beam.Context(temp_dir=str(folder / "tmp")):
        transform_fn = (raw, metadata) | tft_beam.AnalyzeDataset(
            lambda inputs: preprocessing.preprocessing_fn(inputs, settings)
        )
        _ = transform_fn | tft_beam.WriteTransformFn(str(folder / "transform"))
    return tft.TFTransformOutput(str(folder / "transform"))


def learn_lexicon(
    config: LexiconConfig, pairs: Sequence[corpus.Pair]
) -> dict[str, dict[str, float]]:
    """Returns the lexicon of the pairs by IBM Model 1, pruned as the recipe says.

    Only its size matters for speed, not its quality.
    """
    sides = [[line.split() for line in lines] for lines in zip(*pairs)]
    words = [list(collections.Counter(word for line in lines for word in line)) for lines in sides]
    numbers = [{word: number for number, word in enumerate(known, 1)} for known in words]
    ids = [
        [[number[word] for word in line] for line in lines] for lines, number in zip(sides, numbers)
    ]
    links, table = make_links(*ids), None
    for _ in range(config.model1_iterations):
        counts = word_alignment.expected_counts(links, table)
        table = word_alignment.normalize(counts)
    lexicon = to_words(counts, words[0], words[1], config.top_k, config.min_probability)
    return translation_lexicon.prune(lexicon, config.top_k, config.min_probability)


def export(
    recipe: Recipe,
    graph: "tft.TFTransformOutput",
    folder: pathlib.Path,
    trained: str | None = None,
) -> int:
    """Writes the SavedModel of a network, and returns its number of parameters.

    Args:
        recipe, graph: what `recipe` and `write_graph` return.
        folder: of the SavedModel.
        trained: folder of a Trainer's model; without it the network is untrained.
    """
    import keras

    from pipeline.export import seq2seq_export
    from pipeline.training import trainer_outputs
    from pipeline.training.model_building import build_model
    from pipeline.training.model_inputs import ModelInputs

    if trained:
        model = keras.models.load_model(trainer_outputs.model_path(str(trained)), compile=False)
    else:
        keras.utils.set_random_seed(recipe.training.seed)
        sizes = recipe.vocabulary.source_size, recipe.vocabulary.target_size
        lexicon = (
            transform_assets.read_lexicon(graph) if recipe.model.head in LEXICON_HEADS else None
        )
        model = build_model(recipe, ModelInputs(*sizes, lexicon=lexicon))
    seq2seq_export.export_model(
        model, graph, recipe, str(folder), ("serving_default", "serving_default_no_xla")
    )
    return int(model.count_params())


def write_examples(
    graph: "tft.TFTransformOutput", pairs: Sequence[corpus.Pair], path: pathlib.Path
) -> None:
    """Writes the transformed examples of some pairs, as TextTransform does."""
    import tensorflow as tf

    from pipeline.export import transform_graph

    columns = {
        name: tf.constant([[text] for text in texts])
        for name, texts in zip(("source", "target"), zip(*pairs))
    }
    made = transform_graph.TransformGraph(graph)(columns)
    made = {name: tf.RaggedTensor.from_sparse(value).to_list() for name, value in made.items()}
    with tf.io.TFRecordWriter(str(path), options="GZIP") as writer:
        for values in zip(*made.values()):
            feature = {}
            for name, value in zip(made, values):
                if name in ("source_tokens", "source_copy_tokens"):
                    feature[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=value))
                else:
                    feature[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=value))
            writer.write(
                tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
            )
