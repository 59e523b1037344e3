"""The section `data`."""

import dataclasses

from pipeline.recipes.choices import DEFAULT_PLACEHOLDERS, FORMATS
from pipeline.recipes.fields import choice, number


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """The data that are read, and the limits enforced at ingestion."""

    # A task with generated data; `run` then needs no --data.
    synthetic: str = choice("", "rarest_word", "order_tokens", default="")
    # Of `rarest_word`: the probability of a word, divided by that of the next more frequent one.
    # Below 1, how rare the rare words are.
    synthetic_ratio: float = number(0.995, low=0.9, high=1.0)
    # `text` is plain text, for language models.
    format: str = choice("auto", *FORMATS, "text", default="auto")
    # The files of each split, relative to the data folder; wildcards are allowed. An entry is a
    # file, or `source,target` for two line-aligned files. Without train_files every file is read,
    # and the shares below divide the pairs into splits. Without eval_files or test_files that split
    # is a share of the training files.
    train_files: tuple[str, ...] = ()
    # The files of the eval split; without them a share of the training files.
    eval_files: tuple[str, ...] = ()
    # The files of the test split, measured whole; without them a share of the training files.
    test_files: tuple[str, ...] = ()
    # The corpora of a mixture: patterns of training files, such as "news*"; `*` stands for any text
    # and `?` for one character. A file belongs to the first that its name matches (of two aligned
    # files, the source's). `training.corpus_weights` says how often each is read.
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
    # What separates the cells of CSV files. With "\t" the format `csv` reads TSV that has quotes.
    separator: str = choice(",", ";", "\t", "|", default=",")
    # Columns with a tag for each token of the source; the encoder embeds the tags.
    source_features: tuple[str, ...] = ()
    # Features that the graph makes of the source's tokens: "case".
    surface_features: tuple[str, ...] = ()
    # Columns with one value for each pair, such as its domain, for evaluation.slices.
    slice_features: tuple[str, ...] = ()
    # Lexicon files, relative to the data folder. A dictionary has one entry per line: a source
    # word, a tab, a target word. Malformed lines are skipped and counted, up to
    # `max_rejected_share`. A copy lexicon has `phrase :- NP : name:type` (a copy of the phrase's
    # first token writes `name:_type`), or phrase, tab, entity.
    dictionary: str = ""
    # A lexicon of entities: a copy of a phrase's first token writes the entity.
    copy_lexicon: str = ""
    # The token unit: a word; what a model learned from the training text cuts words into; or what
    # the tokenizer of `model.preset` does.
    units: str = choice("words", "characters", "subwords", "preset", default="words")
    # The source's own unit: `words` leaves its words whole where `units` cuts the target's.
    source_units: str = choice("", "words", default="")
    # `text` cuts at words and punctuation; `whitespace` takes text that is already tokenized.
    tokenization: str = choice("text", "whitespace", default="text")
    # The source's own tokenization: `characters` cuts it into characters and drops its white space,
    # for the encoder that finds words itself.
    source_tokenization: str = choice("", "characters", default="")
    # `whole` makes one token of each rare word such as `1,234.56`, `O'Brien`, `/usr/bin/x`, `#tag`,
    # `AT&T`, `C++` and of each emoji, so that a copy carries it over at once; `cut` cuts it at its
    # punctuation.
    rare_words: str = choice("cut", "whole", default="cut")
    # `nfc` composes letters and their marks by Unicode's normal form C on both sides, in training
    # and in serving; protected tokens stay as they are.
    unicode_form: str = choice("none", "nfc", default="none")
    # The dialects of placeholders, which are never cut, from
    # `pipeline.recipes.choices.PLACEHOLDER_DIALECTS`; and further patterns, regular expressions of
    # RE2.
    placeholders: tuple[str, ...] = DEFAULT_PLACEHOLDERS
    # Further patterns of placeholders: regular expressions that RE2 understands.
    placeholder_patterns: tuple[str, ...] = ()
    # In this share of the training pairs words whose translation the lexicon knows become terms, as
    # a glossary has them, so that the model learns where to put a term. A request can have a
    # glossary without it, too.
    term_share: float = number(0.0, low=0.0, high=1.0)
    # Lowercases both sides, in training and in serving.
    lowercase: bool = False
    # A source or target with more characters is rejected, and so is one with more tokens (words
    # and punctuation marks).
    max_characters: int = number(2000, low=1)
    # A source or target with more tokens (words and punctuation marks) is rejected.
    max_tokens: int = number(120, low=1)
    # The run stops if a larger share of the records is rejected.
    max_rejected_share: float = number(0.1, low=0.0, high=1.0)
    # Rejects pairs whose target equals their source: they are untranslated.
    drop_identical: bool = False
    # Rejects a pair with the same source and the same target as an earlier one, but never from
    # eval_files or test_files.
    drop_duplicates: bool = True
    # The share of the pairs that become the eval split, where no files are given for it.
    eval_share: float = number(0.05, low=0.0, high=0.5)
    # The share of the pairs that become the test split, where no files are given for it.
    test_share: float = number(0.05, low=0.0, high=0.5)
    # Hashed with the normalised source to choose the split.
    split_salt: str = "verbatim"

    @property
    def extra_columns(self) -> tuple[str, ...]:
        """The columns besides source and target: the source's tags, then those of slices."""
        return (*self.source_features, *self.slice_features)
