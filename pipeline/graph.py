"""The pipeline: which components there are, and what flows between them."""

import dataclasses

import tfx.v1 as tfx

from components.evaluator.component import Evaluator
from components.exporter.component import Exporter
from components.last_blessed_model import strategy
from components.lexicon.component import Lexicon
from components.parallel_text_example_gen.component import ParallelTextExampleGen
from components.reporter.component import Reporter
from components.subwords.component import Subwords
from components.text_example_gen.component import TextExampleGen
from components.text_transform.component import TextTransform
from components.vocabulary.component import Vocabulary
from pipeline.recipes import views
from pipeline.recipes.task_rules import compares_with_last_blessed
from pipeline.tasks import task_of

RUN_FN = "pipeline.entry_points.run_fn.run_fn"
TUNER_FN = "pipeline.entry_points.tuner.tuner_fn"
BASELINE = "baseline"
#: The component that reads the data of each task.
EXAMPLE_GENS = {"seq2seq": ParallelTextExampleGen, "language_model": TextExampleGen}


def tuner(recipe, transform, schema):
    """Returns the Tuner of a recipe: what searches for values of its keys."""
    return tfx.components.Tuner(
        tuner_fn=TUNER_FN,
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        schema=schema,
        train_args=tfx.proto.TrainArgs(splits=["train"]),
        eval_args=tfx.proto.EvalArgs(splits=["eval"]),
        custom_config={"recipe": views.tuning_recipe(recipe).to_json()},
    )


def trainer(recipe, transform, schema, suffix=None, checkpoint_directory="", hyperparameters=None):
    """Returns the Trainer of a recipe; `suffix` tells several apart.

    Checkpoints go to a folder beside its outputs if none is given.

    `hyperparameters` is the channel of what a Tuner found, which the Trainer takes instead of the
    recipe's own.
    """
    checkpoints = {"checkpoints": checkpoint_directory} if checkpoint_directory else {}
    component = tfx.components.Trainer(
        run_fn=RUN_FN,
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        schema=schema,
        hyperparameters=hyperparameters,
        # Epochs, not steps, end the training: see pipeline.training.trainer.
        train_args=tfx.proto.TrainArgs(splits=["train"]),
        eval_args=tfx.proto.EvalArgs(splits=["eval"]),
        custom_config={"recipe": views.training_recipe(recipe).to_json(), **checkpoints},
    )
    return component.with_id(f"Trainer.{suffix}") if suffix else component


def exporter(recipe, trained, transform, vocabulary, suffix=None, hyperparameters=None):
    """Returns the Exporter of what a Trainer trained, with the same `hyperparameters`."""
    component = Exporter(
        trained_model=trained.outputs["model"],
        transform_graph=transform.outputs["transform_graph"],
        vocabulary=vocabulary.outputs["vocabulary"],
        recipe_json=views.export_recipe(recipe).to_json(),
        hyperparameters=hyperparameters,
    )
    return component.with_id(f"Exporter.{suffix}") if suffix else component


def baseline_recipe(recipe):
    """Returns the recipe of the model to compare with, or None: the same in all but the head.

    The selective read goes with its head, `joint_copy`.
    """
    head = recipe.baseline.head
    if not head:
        return None
    selective_read = recipe.model.selective_read and head == "joint_copy"
    return dataclasses.replace(
        recipe, model=dataclasses.replace(recipe.model, head=head, selective_read=selective_read)
    )


def last_other_blessed_model(candidate):
    """Returns the Resolver of the model that the Evaluator blessed last in this pipeline's earlier
    runs, the candidate itself apart.
    """
    types = tfx.types.standard_artifacts
    return tfx.dsl.Resolver(
        strategy_class=strategy.LastOtherBlessedModelStrategy,
        **{
            strategy.CANDIDATE: candidate,
            strategy.MODEL: tfx.dsl.Channel(type=types.Model),
            strategy.BLESSING: tfx.dsl.Channel(type=types.ModelBlessing),
        },
    ).with_id("LastBlessedModel")


def create_pipeline(
    pipeline_name,
    pipeline_root,
    recipe,
    data_path,
    push_directory,
    metadata_config=None,
    beam_args=(),
    enable_cache=True,
    resolve_blessed=last_other_blessed_model,
    answers_directory="",
    checkpoint_directory="",
):
    """Creates the TFX pipeline of a recipe; it runs nothing.

    Args:
        pipeline_name: its name in the metadata.
        pipeline_root: folder of its artifacts.
        recipe: a `Recipe`.
        data_path: what the recipe's ExampleGen reads; a `RuntimeParameter` of TFX where that is
            known when a run is started.
        push_directory: where blessed models go, a folder a version.
        metadata_config: connection of ML Metadata; None where the runner brings its own.
        beam_args: options for Beam, such as `--runner=FlinkRunner`.
        enable_cache: whether unchanged components are skipped.
        resolve_blessed: function of the candidate's channel; returns the node that finds the model
            that it is compared with.
        answers_directory: folder that keeps what models said to the test split from run to run; ""
            to keep nothing.
        checkpoint_directory: folder that keeps the checkpoints of trainings that have not ended,
            for runners whose runs share no folder of a Trainer; "" is that folder.

    Returns:
        A `tfx.dsl.Pipeline`.
    """
    recipe_json = recipe.to_json()
    task = task_of(recipe)
    # Reads the user's files; every record is kept or stands in the rejects with its reason.
    example_gen = EXAMPLE_GENS[recipe.task](data_path=data_path, recipe_json=recipe_json)
    # Statistics, schema and anomalies: what the data look like, for people and for the next run.
    statistics_gen = tfx.components.StatisticsGen(examples=example_gen.outputs["examples"])
    schema_gen = tfx.components.SchemaGen(
        statistics=statistics_gen.outputs["statistics"], infer_feature_shape=True
    )
    example_validator = tfx.components.ExampleValidator(
        statistics=statistics_gen.outputs["statistics"], schema=schema_gen.outputs["schema"]
    )
    subwords = None
    if recipe.data.units != "words":
        # How words are cut into units.
        subwords = Subwords(examples=example_gen.outputs["examples"], recipe_json=recipe_json)
    cut_by = subwords.outputs["subwords"] if subwords else None
    # The words of the train split; rarer ones are left to the copy mechanism.
    vocabulary = Vocabulary(
        examples=example_gen.outputs["examples"], recipe_json=recipe_json, subwords=cut_by
    )
    lexicon = None
    if recipe.lexicon.kind != "none":
        # Which target words translate a source word, learned from the train split or listed by
        # hand.
        lexicon = Lexicon(
            examples=example_gen.outputs["examples"],
            vocabulary=vocabulary.outputs["vocabulary"],
            recipe_json=recipe_json,
            subwords=cut_by,
        )
    # Raw text to ids in the extended space; this graph is served too.
    transform = TextTransform(
        examples=example_gen.outputs["examples"],
        schema=schema_gen.outputs["schema"],
        vocabulary=vocabulary.outputs["vocabulary"],
        recipe_json=recipe_json,
        lexicon=lexicon.outputs["lexicon"] if views.reads_lexicon(recipe) else None,
        subwords=cut_by,
    )
    components = [example_gen, statistics_gen, schema_gen, example_validator, vocabulary, transform]
    components += [component for component in (lexicon, subwords) if component]
    found = {}
    if recipe.tuning.trials:
        # Which values of the recipe's keys are best; the model and its baseline are trained with
        # the same.
        components.append(tuner(recipe, transform, schema_gen.outputs["schema"]))
        found["hyperparameters"] = components[-1].outputs["best_hyperparameters"]
    # The model that may be pushed.
    given = {"checkpoint_directory": checkpoint_directory, **found}
    trainers = [trainer(recipe, transform, schema_gen.outputs["schema"], **given)]
    exporters = [exporter(recipe, trainers[0], transform, vocabulary, **found)]
    # The model it is compared with in the report; never pushed.
    other = baseline_recipe(recipe)
    if other:
        trainers.append(
            trainer(other, transform, schema_gen.outputs["schema"], suffix=BASELINE, **given)
        )
        exporters.append(
            exporter(other, trainers[-1], transform, vocabulary, suffix=BASELINE, **found)
        )
    comparison, blessed = {}, []
    if compares_with_last_blessed(recipe):
        # Where nothing was blessed yet, it finds nothing, and only the absolute thresholds apply.
        blessed = [resolve_blessed(exporters[0].outputs["model"])]
        comparison["baseline_model"] = blessed[0].outputs["model"]
    # Decodes the test split from raw text, measures, and blesses what reaches the recipe's
    # thresholds.
    evaluator = Evaluator(
        examples=example_gen.outputs["examples"],
        example_splits=[task.evaluated_split(recipe)],
        model=exporters[0].outputs["model"],
        eval_config=task.build_eval_config(recipe),
        module_path=task.evaluator_module(),
        **comparison,
    )
    # What is not blessed is not pushed.
    pusher = tfx.components.Pusher(
        model=exporters[0].outputs["model"],
        model_blessing=evaluator.outputs["blessing"],
        push_destination=tfx.proto.PushDestination(
            filesystem=tfx.proto.PushDestination.Filesystem(base_directory=push_directory)
        ),
    )
    # Measures both models with intervals, and writes the report, and the card of a pushed model.
    reporter = Reporter(
        examples=example_gen.outputs["examples"],
        counts=example_gen.outputs[task.COUNTS_OUTPUT],
        vocabulary=vocabulary.outputs["vocabulary"],
        evaluation=evaluator.outputs["evaluation"],
        pushed_model=pusher.outputs["pushed_model"],
        systems=[
            (exported.outputs["model"], trained.outputs["model"], trained.outputs["model_run"])
            for exported, trained in zip(exporters, trainers)
        ],
        recipe_json=recipe_json,
        answers_directory=answers_directory,
    )
    components += [*trainers, *exporters, *blessed, evaluator, pusher, reporter]
    return tfx.dsl.Pipeline(
        pipeline_name=pipeline_name,
        pipeline_root=pipeline_root,
        components=components,
        enable_cache=enable_cache,
        metadata_connection_config=metadata_config,
        beam_pipeline_args=list(beam_args),
    )
