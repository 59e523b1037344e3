"""The pipeline: which components there are, and what flows between them."""

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import tfx.v1 as tfx
from tfx.dsl.io import fileio
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import BaseChannel

from components.evaluator.component import Evaluator
from components.exporter.component import Exporter
from components.last_blessed_model.resolver import last_other_blessed_model
from components.lexicon.component import Lexicon
from components.parallel_text_example_gen.component import ParallelTextExampleGen
from components.reporter.component import Reporter, SystemChannels
from components.subwords.component import Subwords
from components.text_example_gen.component import TextExampleGen
from components.text_transform.component import TextTransform
from components.vocabulary.component import Vocabulary
from pipeline.lexicons import pretrained_vectors
from pipeline.readers.fingerprints import fingerprint_of, fingerprint_of_folder
from pipeline.recipes import views
from pipeline.recipes.recipe import Recipe
from pipeline.recipes.task_rules import compares_with_last_blessed
from pipeline.tasks import task_of

RUN_FN = "pipeline.entry_points.run_fn.run_fn"
TUNER_FN = "pipeline.entry_points.tuner.tuner_fn"
BASELINE = "baseline"


#: What the components that read data take: a path, or one that is known when a run is started.
DataPath: TypeAlias = str | RuntimeParameter


def _parallel_text(data_path: DataPath, recipe: Recipe) -> ParallelTextExampleGen:
    return ParallelTextExampleGen(data_path, recipe.data, recipe.decoding.length_buckets[-1])


def _streams(data_path: DataPath, recipe: Recipe) -> TextExampleGen:
    return TextExampleGen(
        data_path, recipe.data, recipe.language_model, recipe.decoding.length_buckets
    )


#: What makes the component that reads the data of each task.
EXAMPLE_GENS: dict[str, Callable[[DataPath, Recipe], tfx.types.BaseNode]] = {
    "seq2seq": _parallel_text,
    "language_model": _streams,
}


@dataclasses.dataclass(frozen=True)
class PipelineSettings:
    """What a runner decides about a pipeline.

    Attributes:
        name: its name in the metadata.
        root: folder of its artifacts.
        push_directory: where blessed models go, one folder per version.
        metadata_config: connection of ML Metadata; None where the runner brings its own.
        beam_args: options for Beam, such as `--runner=FlinkRunner`.
        enable_cache: whether unchanged components are skipped.
        resolve_blessed: takes the candidate's channel and returns the node that finds the model
            that it is compared with.
        answers_directory: folder that keeps what models said to the test split from run to run; ""
            to keep nothing.
        initial_model: folder of the version whose weights the training begins with, as
            `initial_model.find_version` gives it; "" for a training that begins anew.
        checkpoint_directory: folder that keeps the checkpoints of trainings that have not ended,
            for runners whose runs share no folder of a Trainer; "" is that folder.
    """

    name: str
    root: str
    push_directory: str
    metadata_config: Any = None
    beam_args: Sequence[str] = ()
    enable_cache: bool = True
    resolve_blessed: Callable[[BaseChannel], tfx.types.BaseNode] = last_other_blessed_model
    answers_directory: str = ""
    checkpoint_directory: str = ""
    initial_model: str = ""


class _TrainerChannels(NamedTuple):
    """What a Trainer reads besides the data.

    Attributes:
        hyperparameters: what a Tuner found, which it takes instead of the recipe's own.
        initial: the model whose weights the training begins with.
    """

    hyperparameters: BaseChannel | None
    initial: BaseChannel | None


@dataclasses.dataclass(frozen=True)
class _Prepared:
    """The components that prepare the data, and those channels that several others read.

    Attributes:
        components: all of them.
        example_gen: the one that reads the user's files.
        examples, schema, vocabulary: what the components of these names wrote.
        transform: the one that makes the features.
    """

    components: list[tfx.types.BaseNode]
    example_gen: tfx.types.BaseNode
    examples: BaseChannel
    schema: BaseChannel
    vocabulary: BaseChannel
    transform: TextTransform


def create_pipeline(
    recipe: Recipe, data_path: DataPath, settings: PipelineSettings
) -> tfx.dsl.Pipeline:
    """Creates the TFX pipeline of a recipe; it runs nothing.

    Args:
        recipe: the recipe.
        data_path: what the recipe's ExampleGen reads; a `RuntimeParameter` of TFX where that is
            known when a run is started.
        settings: what the runner decides.
    """
    task = task_of(recipe)
    prepared = _prepare(recipe, data_path)
    components = list(prepared.components)
    initial = None
    if settings.initial_model:
        # The model that the training goes on from, so that the metadata say what came of what.
        importer = tfx.dsl.Importer(
            source_uri=settings.initial_model, artifact_type=tfx.types.standard_artifacts.Model
        ).with_id("InitialModel")
        components.append(importer)
        initial = importer.outputs["result"]
    hyperparameters = None
    if recipe.tuning.trials:
        # Which values of the recipe's keys are best; the model and its baseline are trained with
        # the same.
        components.append(_tuner(recipe, prepared, initial))
        hyperparameters = components[-1].outputs["best_hyperparameters"]
    # The model that may be pushed, and the one it is compared with in the report.
    systems = {"": recipe}
    if other := baseline_recipe(recipe):
        systems[BASELINE] = other
    trainers = [
        _trainer(
            of_system,
            prepared,
            suffix,
            # Another head has other weights.
            _TrainerChannels(hyperparameters, None if suffix else initial),
            settings.checkpoint_directory,
        )
        for suffix, of_system in systems.items()
    ]
    exporters = [
        _exporter(of_system, prepared, suffix, hyperparameters, trained)
        for (suffix, of_system), trained in zip(systems.items(), trainers)
    ]
    candidate = exporters[0].outputs["model"]
    blessed = []
    comparison = {}
    if compares_with_last_blessed(recipe):
        # Where nothing was blessed yet, it finds nothing, and only the absolute thresholds apply.
        blessed.append(settings.resolve_blessed(candidate))
        comparison["baseline_model"] = blessed[0].outputs["model"]
    # Decodes the test split from raw text, measures, and blesses what reaches the recipe's
    # thresholds.
    evaluator = Evaluator(
        examples=prepared.examples,
        example_splits=[task.evaluated_split(recipe)],
        model=candidate,
        eval_config=task.build_eval_config(recipe),
        module_path=task.evaluator_module(),
        **comparison,
    )
    # What is not blessed is not pushed.
    pusher = tfx.components.Pusher(
        model=candidate,
        model_blessing=evaluator.outputs["blessing"],
        push_destination=tfx.proto.PushDestination(
            filesystem=tfx.proto.PushDestination.Filesystem(base_directory=settings.push_directory)
        ),
    )
    # Measures both models with intervals, and writes the report, and the card of a pushed model.
    reporter = Reporter(
        examples=prepared.examples,
        counts=prepared.example_gen.outputs[task.counts_output],
        vocabulary=prepared.vocabulary,
        evaluation=evaluator.outputs["evaluation"],
        pushed_model=pusher.outputs["pushed_model"],
        systems=[
            SystemChannels(
                model=exported.outputs["model"],
                trained_model=trained.outputs["model"],
                model_run=trained.outputs["model_run"],
            )
            for exported, trained in zip(exporters, trainers)
        ],
        recipe=recipe,
        answers_directory=settings.answers_directory,
    )
    components += [*trainers, *exporters, *blessed, evaluator, pusher, reporter]
    return tfx.dsl.Pipeline(
        pipeline_name=settings.name,
        pipeline_root=settings.root,
        components=components,
        enable_cache=settings.enable_cache,
        metadata_connection_config=settings.metadata_config,
        beam_pipeline_args=list(settings.beam_args),
    )


def _prepare(recipe: Recipe, data_path: DataPath) -> _Prepared:
    """Returns the components from the user's files to the features."""
    # Reads the user's files; every record is kept or stands in the rejects with its reason.
    example_gen = EXAMPLE_GENS[recipe.task](data_path, recipe)
    examples = example_gen.outputs["examples"]
    # Statistics, schema and anomalies: what the data look like, for people and for the next run.
    statistics_gen = tfx.components.StatisticsGen(examples=examples)
    schema_gen = tfx.components.SchemaGen(
        statistics=statistics_gen.outputs["statistics"], infer_feature_shape=True
    )
    example_validator = tfx.components.ExampleValidator(
        statistics=statistics_gen.outputs["statistics"], schema=schema_gen.outputs["schema"]
    )
    subwords = None
    if recipe.data.units != "words":
        # How words are cut into units.
        subwords = Subwords(examples=examples, settings=views.subwords_settings(recipe))
    cut_by = subwords.outputs["subwords"] if subwords else None
    # The words of the train split; rarer ones are left to the copy mechanism.
    vocabulary_settings = views.vocabulary_settings(recipe)
    vocabulary = Vocabulary(
        examples=examples,
        config=recipe.vocabulary,
        settings=vocabulary_settings,
        subwords=cut_by,
    )
    lexicon = None
    if recipe.lexicon.kind != "none":
        # Which target words translate a source word, learned from the train split or listed by
        # hand.
        lexicon = Lexicon(
            examples=examples,
            vocabulary=vocabulary.outputs["vocabulary"],
            config=recipe.lexicon,
            settings=vocabulary_settings,
            subwords=cut_by,
        )
    # Raw text to ids in the extended space; this graph is served too.
    transform = TextTransform(
        examples=examples,
        schema=schema_gen.outputs["schema"],
        vocabulary=vocabulary.outputs["vocabulary"],
        preprocessing_fn=task_of(recipe).preprocessing_fn,
        settings=views.transform_settings(recipe),
        lexicon=lexicon.outputs["lexicon"] if lexicon and views.reads_lexicon(recipe) else None,
        subwords=cut_by,
    )
    components = [example_gen, statistics_gen, schema_gen, example_validator, vocabulary, transform]
    components += [component for component in (lexicon, subwords) if component]
    return _Prepared(
        components,
        example_gen,
        examples,
        schema_gen.outputs["schema"],
        vocabulary.outputs["vocabulary"],
        transform,
    )


def _tuner(
    recipe: Recipe, prepared: _Prepared, initial: BaseChannel | None
) -> tfx.components.Tuner:
    """Returns the component that searches for values of a recipe's keys."""
    return tfx.components.Tuner(
        tuner_fn=TUNER_FN,
        examples=prepared.transform.outputs["transformed_examples"],
        transform_graph=prepared.transform.outputs["transform_graph"],
        schema=prepared.schema,
        train_args=tfx.proto.TrainArgs(splits=["train"]),
        eval_args=tfx.proto.EvalArgs(splits=["eval"]),
        base_model=initial,
        custom_config={"recipe": views.tuning_recipe(recipe).to_json(), **_first_weights(recipe)},
    )


def _trainer(
    recipe: Recipe,
    prepared: _Prepared,
    suffix: str,
    channels: _TrainerChannels,
    checkpoint_directory: str,
) -> tfx.components.Trainer:
    """Returns the component that trains a recipe's model.

    Args:
        recipe: the recipe.
        prepared: the data.
        suffix: tells several apart; "" for the run's own model.
        channels: what it reads besides the data.
        checkpoint_directory: where checkpoints go; "" is a folder beside its outputs.
    """
    checkpoints = {"checkpoints": checkpoint_directory} if checkpoint_directory else {}
    component = tfx.components.Trainer(
        run_fn=RUN_FN,
        examples=prepared.transform.outputs["transformed_examples"],
        transform_graph=prepared.transform.outputs["transform_graph"],
        schema=prepared.schema,
        hyperparameters=channels.hyperparameters,
        base_model=channels.initial,
        # Epochs, not steps, end the training: see pipeline.training.trainer.
        train_args=tfx.proto.TrainArgs(splits=["train"]),
        eval_args=tfx.proto.EvalArgs(splits=["eval"]),
        custom_config={
            "recipe": views.training_recipe(recipe).to_json(),
            **checkpoints,
            **_first_weights(recipe),
        },
    )
    return component.with_id(f"Trainer.{suffix}") if suffix else component


def _first_weights(recipe: Recipe) -> dict[str, str]:
    """Returns what makes files of word vectors and of a preset part of a cache key.

    A file that cannot be reached from here has no part in it: a pipeline may be written where its
    files are not. A preset that is named, not a folder, is of a fixed version.
    """
    preset = recipe.model.preset
    paths = [(key, getattr(recipe.model, key)) for key in pretrained_vectors.KEYS]
    files = [(key, path) for key, path in paths if path and fileio.exists(path)]
    found = {"word_vectors": fingerprint_of(files)} if files else {}
    if os.path.isdir(preset):
        found["preset"] = fingerprint_of_folder(preset)
    return found


def _exporter(
    recipe: Recipe,
    prepared: _Prepared,
    suffix: str,
    hyperparameters: BaseChannel | None,
    trained: tfx.components.Trainer,
) -> Exporter:
    """Returns the component that exports what a Trainer trained; arguments as for `_trainer`."""
    component = Exporter(
        trained_model=trained.outputs["model"],
        transform_graph=prepared.transform.outputs["transform_graph"],
        vocabulary=prepared.vocabulary,
        recipe=views.export_recipe(recipe),
        hyperparameters=hyperparameters,
        only_measured=bool(suffix),
    )
    return component.with_id(f"Exporter.{suffix}") if suffix else component


def baseline_recipe(recipe: Recipe) -> Recipe | None:
    """Returns the recipe of the model to compare with, the same in all but the head.

    The selective read goes with its head, `joint_copy`. None where the recipe names no baseline.
    """
    head = recipe.baseline.head
    if not head:
        return None
    selective_read = recipe.model.selective_read and head == "joint_copy"
    return dataclasses.replace(
        recipe,
        model=dataclasses.replace(recipe.model, head=head, selective_read=selective_read),
        training=dataclasses.replace(recipe.training, initialize_from=""),
    )
