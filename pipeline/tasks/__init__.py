"""What differs between the tasks of a recipe: a class for each, chosen here."""

from pipeline.recipes.recipe import Recipe
from pipeline.tasks.language_model_task import LanguageModelTask
from pipeline.tasks.seq2seq_task import Seq2SeqTask
from pipeline.tasks.task import Task

_TASKS: dict[str, Task] = {"seq2seq": Seq2SeqTask(), "language_model": LanguageModelTask()}


def task_named(name: str) -> Task:
    """Returns a task by the recipe's name for it."""
    return _TASKS[name]


def task_of(recipe: Recipe) -> Task:
    """Returns a recipe's task."""
    return task_named(recipe.task)
