"""Writes an exported Transformer as a model of CTranslate2."""

import dataclasses
import importlib.util
import os
import pathlib
import shutil
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any

from pipeline.common import progress
from pipeline.common.whole_files import write_json
from pipeline.export import ctranslate2_rules, ctranslate2_weights
from pipeline.export.ctranslate2_facts import FACTS_FILE, MODEL_FILE, Facts, longest_output
from pipeline.export.ctranslate2_rules import ConversionError
from pipeline.export.loaded_model import read_facts, version_directory
from pipeline.features import vocabulary_files
from pipeline.recipes import views
from pipeline.recipes.recipe import Recipe, recipe_from_dict
from pipeline.recipes.sections import DecodingConfig
from pipeline.text import tokenization, units
from pipeline.text.placeholders.syntax import OPTION, PLACEHOLDER, TAG, URL
from pipeline.training.exported_weights import ExportedWeights

# The fewest positions that a converted model knows, so that it can be tried with longer texts.
_POSITIONS = 1024
# CTranslate2 ends a search once beam_size * patience hypotheses have ended. With 1, its default,
# short and improbable ones end searches whose best hypothesis is a token away from its end.
_PATIENCE = 2
# Weights of a training alone: the states of random numbers, and scheduled sampling's share.
_NOT_COMPUTED_WITH = ("seed_generator", "gold_probability", "lexicon_ids", "lexicon_probabilities")


def convert(
    model: str, output: str, quantization: str = "float32", without: Collection[str] = ()
) -> Facts:
    """Converts an exported model.

    Args:
        model: a model folder, or one of its versions.
        output: the folder to write; it must not exist, or be empty.
        quantization: how weights are stored, as CTranslate2 calls it, such as `"int8"`. What they
            are computed in is chosen when the model is loaded.
        without: keys of decoding that the converted model may do without.

    Returns:
        What was written into `FACTS_FILE`.

    Raises:
        ConversionError: it cannot be converted, or `ctranslate2` is not installed.
        ModelError: there is no such model.
    """
    folder = pathlib.Path(output)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConversionError(f"The folder {folder} exists and is not empty: name another one.")
    version = version_directory(model)
    facts = read_facts(version)
    if "recipe" not in facts:
        raise ConversionError(
            f"The model {version} does not say how it was trained: export it again with this "
            "version."
        )
    recipe = recipe_from_dict(facts["recipe"])
    ctranslate2_rules.check_network(recipe)
    _check_package()
    exported = ExportedWeights.read(str(version))
    if exported is None:
        raise ConversionError(
            f"The model {version} was exported by an older version, which did not write the names "
            "of its weights: run its recipe again."
        )
    words = {
        side: exported.words[vocabulary_files.vocabulary_file(side)]
        for side in vocabulary_files.SIDES
    }
    missing = ctranslate2_rules.inexpressible(recipe, words["target"])
    ctranslate2_rules.check_decoding(missing, without)
    if recipe.training.mixed_precision:
        progress.warn(
            "The model computes in bfloat16 and CTranslate2 in float32: answers may differ."
        )
    decoding = dataclasses.replace(recipe.decoding, **ctranslate2_rules.neutral(without))
    converted = Facts(
        name=recipe.name,
        version=version.name,
        data=recipe.data,
        decoding=decoding,
        without=tuple(sorted(without)),
        quantization=quantization,
        translate_batch=_translate_batch(decoding, recipe.decoding.keep_protected),
    )
    spec = _specification(recipe, exported, words)
    spec.validate()
    spec.optimize(quantization=quantization)
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        spec.save(str(partial))
        if units.cuts(views.text_settings(recipe), "source"):
            touching = recipe.data.tokenization == "text"
            (partial / MODEL_FILE).write_bytes(_source_model(version, words, touching))
        write_json(partial / FACTS_FILE, converted.to_dict())
        if folder.exists():
            folder.rmdir()
        os.replace(partial, folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return converted


def _check_package() -> None:
    if importlib.util.find_spec("ctranslate2") is None:
        raise ConversionError(
            "The package 'ctranslate2' is not installed; this command needs it: pip install "
            "'path/to/verbatim[ctranslate2]', a checkout of Verbatim, or pip install ctranslate2."
        )


def _specification(
    recipe: Recipe, exported: ExportedWeights, words: Mapping[str, Sequence[str]]
) -> Any:
    """Returns CTranslate2's specification of a model, with its weights and vocabularies."""
    model = recipe.model
    longest = recipe.decoding.length_buckets[-1]
    network = ctranslate2_weights.Network(
        attention_heads=model.attention_heads,
        encoder_layers=model.encoder_layers,
        decoder_layers=model.decoder_layers,
        norm_first=model.norm_first,
        positions=max(_POSITIONS, longest, longest_output(longest, recipe.decoding) + 2),
    )
    weights = {
        weight.name: weight.value
        for weight in exported.weights
        if not any(part in weight.name for part in _NOT_COMPUTED_WITH)
    }
    spec = ctranslate2_weights.fill(network, weights)
    for side, register in (
        ("source", spec.register_source_vocabulary),
        ("target", spec.register_target_vocabulary),
    ):
        if len(set(words[side])) < len(words[side]):
            raise ConversionError(
                f"The {side} vocabulary has a word twice, so CTranslate2 cannot tell them apart."
            )
        register(list(words[side]))
    config = spec.config
    config.unk_token, config.eos_token = tokenization.UNK, tokenization.END
    config.bos_token = config.decoder_start_token = tokenization.START
    return spec


def _translate_batch(decoding: DecodingConfig, bans_classes: bool) -> dict[str, Any]:
    """Returns `Facts.translate_batch`.

    Args:
        decoding: how the model searches.
        bans_classes: whether the classes of unknown protected tokens are never output.
    """
    banned = [tokenization.PAD, tokenization.START]
    banned += [PLACEHOLDER, TAG, URL, OPTION] if bans_classes else []
    return {
        "beam_size": decoding.beam_size,
        "patience": _PATIENCE,
        "num_hypotheses": min(decoding.n_best, decoding.beam_size),
        "length_penalty": decoding.length_penalty,
        "coverage_penalty": decoding.coverage_penalty,
        "no_repeat_ngram_size": decoding.no_repeat_ngram,
        "min_decoding_length": decoding.min_length,
        "max_decoding_length": longest_output(decoding.length_buckets[-1], decoding),
        "max_input_length": 0,
        "disable_unk": decoding.replace_unknown == "none",
        "replace_unknowns": decoding.replace_unknown == "copy",
        "suppress_sequences": [[token] for token in banned],
        "return_scores": True,
        "return_attention": decoding.replace_unknown == "copy",
    }


def _source_model(
    version: pathlib.Path, words: Mapping[str, Sequence[str]], touching: bool
) -> bytes:
    """Returns the sentencepiece model that cuts the source, which the graph of a SavedModel holds.

    Of two, the source's is the one whose units are more of the source's vocabulary.

    Args:
        version: the SavedModel's folder.
        words: the vocabularies of both sides.
        touching: see `units.possible_units`.
    """
    models = sorted(_unit_models(version))
    known = {side: set(words[side]) for side in words}

    def of_source(model: bytes) -> int:
        made = set(units.possible_units(model, touching))
        return len(made & known["source"]) - len(made & known["target"])

    if not models:
        raise ConversionError(
            f"The model {version} holds nothing that cuts words into units: export it again."
        )
    return max(models, key=of_source)


def _unit_models(version: pathlib.Path) -> Set[bytes]:
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel.FromString((version / "saved_model.pb").read_bytes())
    graph = saved.meta_graphs[0].graph_def
    nodes = [*graph.node, *(node for one in graph.library.function for node in one.node_def)]
    return {node.attr["model"].s for node in nodes if node.op == "SentencepieceOp"}
