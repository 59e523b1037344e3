"""The section `data`."""

import dataclasses

from pipeline.recipes.choices import DEFAULT_PLACEHOLDERS, FORMATS, RARE_WORDS
from pipeline.recipes.fields import choice, number


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """The data that are read, and the limits enforced at ingestion."""

    # A task with generated data; `run` then needs no --data.
    synthetic: str = choice("", "rarest_word", "order_tokens", default="")
    # For `rarest_word`: the probability of a word, divided by the probability of the next more
    # frequent word. A smaller ratio makes rare words rarer.
    synthetic_ratio: float = number(0.995, low=0.9, high=1.0)
    # `text` is plain text, for language models.
    format: str = choice("auto", *FORMATS, "text", default="auto")
    # The files of the training split, relative to the data folder; wildcards are allowed. An entry
    # is a file, or `source,target` for two line-aligned files. Without train_files, every file is
    # read, and `eval_share` and `test_share` divide the pairs into splits.
    train_files: tuple[str, ...] = ()
    # The files of the eval split. Without them, the split is a share of the training files.
    eval_files: tuple[str, ...] = ()
    # The files of the test split, which is measured as a whole. Without them, the split is a share
    # of the training files.
    test_files: tuple[str, ...] = ()
    # The corpora of a mixture: patterns of training files, such as "news*"; `*` stands for any text
    # and `?` for one character. A file belongs to the first pattern that its name matches; for two
    # aligned files, the source file's name counts. `training.corpus_weights` says how often each
    # corpus is read.
    corpora: tuple[str, ...] = ()
    # The language code of the source; metrics and file names read it.
    source_language: str = "en"
    # The language code of the target; metrics and file names read it.
    target_language: str = "fr"
    # The column or JSON key of the source.
    source_column: str = "source"
    # The column or JSON key of the target.
    target_column: str = "target"
    # The names of the columns, if TSV or CSV files have no header.
    columns: tuple[str, ...] = ()
    # The character between cells of CSV files. With "\t", the format `csv` reads TSV with quotes.
    separator: str = choice(",", ";", "\t", "|", default=",")
    # Columns with a tag for each token of the source; the encoder embeds the tags.
    source_features: tuple[str, ...] = ()
    # Features that the model's graph computes from the source's tokens: "case".
    surface_features: tuple[str, ...] = ()
    # Columns with one value for each pair, such as its domain, for evaluation.slices.
    slice_features: tuple[str, ...] = ()
    # A dictionary file, relative to the data folder. It has one entry per line: a source word, a
    # tab, a target word. Malformed lines are skipped and counted, up to `max_rejected_share`.
    dictionary: str = ""
    # A file with a lexicon of entities, relative to the data folder. A copy of a phrase's first
    # token writes the entity. Each line is a phrase, a tab and an entity, or
    # `phrase :- NP : name:type`, whose entity is `name:_type`.
    copy_lexicon: str = ""
    # How many new pairs are made of each training pair at most: entities that `copy_lexicon` names
    # are exchanged for others of the same type, on both sides. The type stands behind an entity's
    # last colon. New pairs never have the source of an eval or test pair.
    recombinations: int = number(0, low=0, high=100)
    # The token unit: whole words; the characters or subwords that a model learned from the training
    # text cuts words into; or the pieces of the tokenizer of `model.preset`.
    units: str = choice("words", "characters", "subwords", "preset", default="words")
    # The source's own unit: `words` keeps source words whole, while `units` cuts target words.
    source_units: str = choice("", "words", default="")
    # `text` cuts at words and punctuation; `whitespace` takes text that is already tokenized.
    tokenization: str = choice("text", "whitespace", default="text")
    # The source's own tokenization: `characters` cuts it into characters and drops its white space,
    # for the encoder that finds words itself.
    source_tokenization: str = choice("", "characters", default="")
    # Where words end. `cut` cuts at punctuation, but keeps `self.save` and `fr-CA` whole. `whole`
    # makes one token of each rare word such as `1,234.56`, `O'Brien`, `/usr/bin/x`, `#tag`, `AT&T`,
    # `C++` and of each emoji, so that one copy writes the whole word. `parts` cuts `self.save` too,
    # so that each part can be copied alone. `letters` also cuts at `_`.
    rare_words: str = choice(*RARE_WORDS, default="cut")
    # `nfc` composes letters and their marks by Unicode's normal form C on both sides, in training
    # and in serving; protected tokens stay as they are.
    unicode_form: str = choice("none", "nfc", default="none")
    # The dialects of placeholders, from `pipeline.recipes.choices.PLACEHOLDER_DIALECTS`.
    # Placeholders are never cut.
    placeholders: tuple[str, ...] = DEFAULT_PLACEHOLDERS
    # Further patterns of placeholders: regular expressions that RE2 understands.
    placeholder_patterns: tuple[str, ...] = ()
    # In this share of the training pairs, words whose translation the lexicon knows become glossary
    # terms, so that the model learns where to put a term. Requests can have a glossary even if this
    # share is 0.
    term_share: float = number(0.0, low=0.0, high=1.0)
    # Lowercases both sides, in training and in serving.
    lowercase: bool = False
    # A source or target with more characters is rejected.
    max_characters: int = number(2000, low=1)
    # A source or target with more tokens (words and punctuation marks) is rejected.
    max_tokens: int = number(120, low=1)
    # The run stops if a larger share of the records is rejected.
    max_rejected_share: float = number(0.1, low=0.0, high=1.0)
    # Rejects pairs whose target equals their source, because they are untranslated.
    drop_identical: bool = False
    # Rejects a pair with the same source and the same target as an earlier one, but never from
    # eval_files or test_files.
    drop_duplicates: bool = True
    # The share of the pairs that become the eval split, if `eval_files` names no files.
    eval_share: float = number(0.05, low=0.0, high=0.5)
    # The share of the pairs that become the test split, if `test_files` names no files.
    test_share: float = number(0.05, low=0.0, high=0.5)
    # A text that is hashed with the normalised source to choose the split of a pair.
    split_salt: str = "verbatim"

    @property
    def extra_columns(self) -> tuple[str, ...]:
        """The columns besides source and target: the source's tags, then those of slices."""
        return (*self.source_features, *self.slice_features)
