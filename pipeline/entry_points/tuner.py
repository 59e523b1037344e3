"""TFX Tuner's entry: searches for values of a recipe's keys with keras-tuner.

Values are compared by what `training.select_by` names, of the epochs that trainings with them keep.
"""

import time
from collections.abc import Mapping
from typing import Any

import keras
import keras_tuner
import tensorflow as tf
import tensorflow_transform as tft
import tfx.v1 as tfx
from keras_tuner.engine import base_tuner
from keras_tuner.engine.trial import Trial, TrialStatus

from pipeline.common import progress
from pipeline.common.errors import VerbatimError
from pipeline.recipes import search_space, views
from pipeline.recipes.recipe import Recipe
from pipeline.tasks import task_of
from pipeline.training.selection import Selection
from pipeline.training.trainer_arguments import TrainerArguments

# keras-tuner's name of what is compared.
OBJECTIVE = "measure"


class SearchError(VerbatimError, RuntimeError):
    """A search that found nothing; its message is one sentence for the user."""


def make_hyperparameters(
    space: Mapping[str, search_space.Range | tuple[Any, ...]],
) -> keras_tuner.HyperParameters:
    """Returns keras-tuner's `HyperParameters` of a `TuningConfig.space`."""
    hyperparameters = keras_tuner.HyperParameters()
    for key, values in space.items():
        if isinstance(values, search_space.Range):
            make = hyperparameters.Int if isinstance(values.low, int) else hyperparameters.Float
            make(key, values.low, values.high, sampling=values.scale)
        else:
            hyperparameters.Choice(key, list(values))
    return hyperparameters


def make_oracle(recipe: Recipe) -> keras_tuner.oracles.RandomSearchOracle:
    """Returns the oracle of a recipe's `tuning.algorithm`, which chooses each trial's values."""
    tuning = recipe.tuning
    options = {
        "objective": keras_tuner.Objective(OBJECTIVE, Selection.of_training(recipe.training).mode),
        "hyperparameters": make_hyperparameters(tuning.space),
        "seed": tuning.seed,
        # However many fail in a row, the other trials still run.
        "max_consecutive_failed_trials": tuning.trials + 1,
    }
    if tuning.algorithm == "hyperband":
        epochs = tuning.epochs or recipe.training.epochs
        # It continues, bracket after bracket, until the trials are used up.
        oracle = keras_tuner.oracles.HyperbandOracle(
            max_epochs=epochs, hyperband_iterations=None, **options
        )
        # Its constructor has no such argument, but the base class uses it and TFX compares with it.
        oracle.max_trials = tuning.trials
        return oracle
    kinds = {
        "random": keras_tuner.oracles.RandomSearchOracle,
        "bayesian": keras_tuner.oracles.BayesianOptimizationOracle,
    }
    return kinds[tuning.algorithm](max_trials=tuning.trials, **options)


class RecipeTuner(base_tuner.BaseTuner):
    """Trains a recipe with one choice of values after another; no trial's weights are kept.

    Args:
        recipe: a `Recipe` with `tuning.trials` above 0.
        directory: folder of the search's state.
    """

    def __init__(self, recipe: Recipe, directory: str) -> None:
        super().__init__(make_oracle(recipe), directory=directory, project_name="search")
        self.recipe = recipe
        self._selection = Selection.of_training(recipe.training)
        # The trial.
        self._started = time.monotonic()
        # Why the last trial that failed did.
        self._failure = ""
        # Each trial is reported in one line here instead.
        self.oracle.verbose = 0

    def trial_recipe(self, hyperparameters: keras_tuner.HyperParameters) -> Recipe:
        """Returns the recipe that a trial trains.

        Raises:
            RecipeError: its values do not fit together.
        """
        values = {
            key: value
            for key, value in hyperparameters.values.items()
            if key in self.recipe.tuning.space
        }
        epochs = (
            hyperparameters.values.get("tuner/epochs")
            or self.recipe.tuning.epochs
            or self.recipe.training.epochs
        )
        # Several workers make the updates of one, and what is good for a member is good for its
        # ensemble; the trials are trained in this process. A trial
        # that `hyperband` continues starts again: its learning rate falls over all of its epochs.
        return views.with_values(
            self.recipe,
            {**values, "training.epochs": epochs, "training.workers": 1, "training.ensemble": 1},
        )

    def run_trial(self, trial: Trial, fn_args: Any) -> dict[str, float]:
        """Trains with a trial's values.

        Args:
            trial: keras-tuner's.
            fn_args: TFX's.

        Returns:
            Dict with the measure of the weights that the training has kept.

        Raises:
            keras_tuner.errors.FailedTrialError: the values do not fit together, the training gave
                no finite loss, or memory is too small.
            keras_tuner.errors.FatalError: anything else, which would fail the next trial too.
        """
        keras.utils.clear_session()
        try:
            recipe = self.trial_recipe(trial.hyperparameters)
            arguments = TrainerArguments.of(fn_args)
            transform_output = tft.TFTransformOutput(arguments.transform_graph_path)
            _, facts = task_of(recipe).train(recipe, arguments, transform_output)
            if not facts["curve"]:
                raise ValueError("The training gave no finite loss: lower training.learning_rate.")
        except ValueError as error:
            self._failure = str(error)
            raise keras_tuner.errors.FailedTrialError(self._failure) from error
        except tf.errors.ResourceExhaustedError as error:
            self._failure = "It ran out of memory."
            raise keras_tuner.errors.FailedTrialError(self._failure) from error
        except Exception as error:
            # keras-tuner would count it as a failed trial and continue.
            raise keras_tuner.errors.FatalError(f"{type(error).__name__}: {error}") from error
        return {OBJECTIVE: self._selection.of_curve(facts["curve"])}

    def on_trial_begin(self, trial: Trial) -> None:
        super().on_trial_begin(trial)
        self._started = time.monotonic()

    def on_trial_end(self, trial: Trial) -> None:
        """Records a trial and reports it in one line."""
        super().on_trial_end(trial)
        tuning, values = self.recipe.tuning, trial.hyperparameters.values
        epochs = f", {values['tuner/epochs']} epochs" if "tuner/epochs" in values else ""
        shown = search_space.describe({key: values[key] for key in tuning.space})
        if trial in self._completed():
            best = ", the best so far" if trial is self._completed()[0] else ""
            outcome = f"{self._selection.label} {trial.score:.4f}{best}"
        else:
            outcome = f"failed. {self._failure}"
        progress.say(
            f"trial {len(self.oracle.end_order)} of {tuning.trials}: {shown}{epochs}: {outcome}  "
            f"{time.monotonic() - self._started:.0f} s"
        )

    def on_search_end(self) -> None:
        """Checks that there is a best trial.

        Raises:
            SearchError: all trials failed.
        """
        super().on_search_end()
        if not self._completed():
            raise SearchError(
                f"All {len(self.oracle.end_order)} trials failed, so there are no values to train "
                f"with: change 'tuning.space'. (The last one: {self._failure})"
            )

    def get_best_hyperparameters(self, num_trials: int = 1) -> list[keras_tuner.HyperParameters]:
        """Returns those of the best trials, with the facts of the search beside their values.

        So both reach the Trainer in one file.
        """
        best_ones = []
        for best in self._completed()[:num_trials]:
            hyperparameters = best.hyperparameters.copy()
            facts = {
                "algorithm": self.recipe.tuning.algorithm,
                "trials": len(self.oracle.end_order),
                "failed": len(self.oracle.end_order) - len(self._completed()),
                "measure": self._selection.label,
                "score": best.score,
            }
            hyperparameters.values.update({f"tuner/{name}": value for name, value in facts.items()})
            best_ones.append(hyperparameters)
        return best_ones

    def search_space_summary(self, extended: bool = False) -> None:
        """Reports what is searched; TFX calls it before the search."""
        tuning = self.recipe.tuning
        progress.say(
            f"{tuning.algorithm} search of up to {tuning.trials} trials: {', '.join(tuning.space)}"
        )

    def results_summary(self, num_trials: int = 1) -> None:
        """Reports the result; TFX calls it after the search."""
        for hyperparameters in self.get_best_hyperparameters(num_trials=1):
            found = search_space.read_found(hyperparameters.get_config())
            progress.say(search_space.summary(found))

    def _completed(self) -> list[Trial]:
        """Returns the trials with a loss, the best first."""
        trials = self.oracle.get_best_trials(len(self.oracle.trials))
        return [trial for trial in trials if trial.status == TrialStatus.COMPLETED]


def tuner_fn(fn_args: Any) -> tfx.components.TunerFnResult:
    """Makes the search; called by TFX's Tuner, which runs it.

    Args:
        fn_args: TFX's; `custom_config["recipe"]` is what `Recipe.to_json` gives.

    Returns:
        A `TunerFnResult`.
    """
    recipe = Recipe.from_json(fn_args.custom_config["recipe"])
    tuner = RecipeTuner(recipe, fn_args.working_dir)
    return tfx.components.TunerFnResult(tuner=tuner, fit_kwargs={"fn_args": fn_args})
