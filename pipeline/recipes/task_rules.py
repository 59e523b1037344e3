"""What a recipe's task decides about the recipe itself:
a module for each task, with the same functions, chosen here.

What a task does is in `pipeline.tasks`.
"""

from pipeline.recipes import language_model_rules, seq2seq_rules

_RULES = {"seq2seq": seq2seq_rules, "language_model": language_model_rules}


def rules_of(recipe):
    """Returns the module with the rules of a recipe's task."""
    return _RULES[recipe.task]


def compares_with_last_blessed(recipe):
    """Whether the Evaluator of a recipe needs the last blessed model too."""
    return rules_of(recipe).compares_with_last_blessed(recipe)
