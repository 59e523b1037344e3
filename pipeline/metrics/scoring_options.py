"""How outputs are scored."""

import dataclasses

from pipeline.recipes.choices import DEFAULT_PLACEHOLDERS
from pipeline.recipes.recipe_keys import RecipeKeys
from pipeline.text.tokenization import Tokenizer

#: sacrebleu's own default seed. With it, and the same number of resamples, our resamples are
#: sacrebleu's.
DEFAULT_SEED = 12345


@dataclasses.dataclass(frozen=True)
class ScoringOptions:
    """How outputs are scored; a metric ignores options that it does not need.

    Attributes:
        language: language code of the outputs; it decides how BLEU and ROUGE cut words.
        tokenize: a sacrebleu tokenizer for BLEU instead of the language's (`13a`, `none`, `char`,
            `zh`, ...).
        tokenization: `whitespace` if the texts are already tokenized: BLEU, copies and repetitions
            use these tokens.
        placeholders: the dialects of placeholders that must be kept, from
            `pipeline.text.placeholders.DIALECTS`.
        placeholder_patterns: further patterns of placeholders.
        rare_words: where words end, as in `data.rare_words`.
        database: path of the SQLite file that `execution_accuracy` runs queries on.
        glossary: path of the glossary that `term_fidelity` looks for.
        bootstrap_samples: resampled test sets behind each interval; 0 for no intervals.
        seed: seed of the resampling; the default is sacrebleu's.
        trials: how often a test by randomisation swaps segments; the default is sacrebleu's.
    """

    language: str = "en"
    tokenize: str | None = None
    tokenization: str = "text"
    placeholders: tuple[str, ...] = DEFAULT_PLACEHOLDERS
    placeholder_patterns: tuple[str, ...] = ()
    rare_words: str = "cut"
    database: str | None = None
    glossary: str | None = None
    bootstrap_samples: int = 1000
    seed: int = DEFAULT_SEED
    trials: int = 10000

    def __post_init__(self) -> None:
        # JSON has lists.
        object.__setattr__(self, "placeholders", tuple(self.placeholders))
        object.__setattr__(self, "placeholder_patterns", tuple(self.placeholder_patterns))

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, for metrics of words and protected tokens."""
        return Tokenizer(
            self.tokenization,
            dialects=self.placeholders,
            own_patterns=self.placeholder_patterns,
            rare_words=self.rare_words,
        )

    @classmethod
    def of(cls, recipe: RecipeKeys, bootstrap_samples: int = 1000) -> "ScoringOptions":
        """Returns the options with which a recipe's outputs are measured."""
        return cls(
            language=recipe.data.target_language,
            tokenization=recipe.data.tokenization,
            placeholders=recipe.data.placeholders,
            placeholder_patterns=recipe.data.placeholder_patterns,
            rare_words=recipe.data.rare_words,
            database=recipe.evaluation.database or None,
            glossary=recipe.decoding.glossary or None,
            bootstrap_samples=bootstrap_samples,
        )


#: The default options.
DEFAULT_OPTIONS = ScoringOptions()
