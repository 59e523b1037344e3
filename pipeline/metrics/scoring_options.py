"""How outputs are scored."""

import dataclasses

from pipeline.recipes.recipe_keys import RecipeKeys

#: sacrebleu's own default seed. With it, and the same number of resamples, our resamples are
#: sacrebleu's.
DEFAULT_SEED = 12345


@dataclasses.dataclass(frozen=True)
class ScoringOptions:
    """How outputs are scored, whatever they are; a metric ignores what it has no use for.

    Attributes:
        language: language code of the outputs; it decides how BLEU and ROUGE cut words.
        tokenize: a sacrebleu tokenizer for BLEU instead of the language's (`13a`, `none`, `char`,
            `zh`, ...).
        tokenization: `whitespace` if the texts are already tokenized: BLEU, copies and repetitions
            go by these tokens.
        database: path of the SQLite file that `execution_accuracy` runs queries on.
        bootstrap_samples: resampled test sets behind each interval; 0 for no intervals.
        seed: seed of the resampling; the default is sacrebleu's.
        trials: how often a test by randomisation swaps segments; the default is sacrebleu's.
    """

    language: str = "en"
    tokenize: str | None = None
    tokenization: str = "text"
    database: str | None = None
    bootstrap_samples: int = 1000
    seed: int = DEFAULT_SEED
    trials: int = 10000

    @classmethod
    def of(cls, recipe: RecipeKeys, bootstrap_samples: int = 1000) -> "ScoringOptions":
        """Returns the options with which a recipe's outputs are measured."""
        return cls(
            language=recipe.data.target_language,
            tokenization=recipe.data.tokenization,
            database=recipe.evaluation.database or None,
            bootstrap_samples=bootstrap_samples,
        )


#: Those of a caller who asks for nothing else.
DEFAULT_OPTIONS = ScoringOptions()
