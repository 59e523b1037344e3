"""What differs between the tasks of a recipe:
a module for each, with the same functions, chosen here.

The modules import what only their task needs where they need it, so that choosing costs nothing.
What a task decides about the recipe itself is in `pipeline.recipes.task_rules`, below everything
else.
"""

from pipeline.tasks import language_model, seq2seq

_TASKS = {"seq2seq": seq2seq, "language_model": language_model}


def task_named(name):
    """Returns the module of a task by the recipe's name for it."""
    return _TASKS[name]


def task_of(recipe):
    """Returns the module of a recipe's task."""
    return task_named(recipe.task)
