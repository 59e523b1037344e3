"""Settings of components, made from parts of a recipe, as JSON.

Each is part of a cache key, so a key is present only if the recipe needs it.
"""

from typing import TypedDict


class _TokenizerKind(TypedDict):
    kind: str
    lowercase: bool


class TokenizerSettings(_TokenizerKind, total=False):
    """The arguments of `pipeline.text.tokenization.Tokenizer`.

    Attributes:
        kind, lowercase: how texts are cut.
        dialects: the dialects of placeholders, where they are not the default.
        terms: true where the training has terms of a glossary.
        own_patterns: further patterns of placeholders.
        rare_words: where words end, if not as by default.
        nfc: true where texts are in Unicode's normal form C.
    """

    dialects: list[str]
    own_patterns: list[str]
    terms: bool
    rare_words: str
    nfc: bool


class _Tokenizers(TypedDict):
    tokenizer: TokenizerSettings


class TaskTextSettings(TypedDict, total=False):
    """Text settings that only one task has.

    Attributes:
        task: `"language_model"`; without it `"seq2seq"`.
        unknown_word: how the text of a language model writes an unknown word.
    """

    task: str
    unknown_word: str


class TextSettings(_Tokenizers, TaskTextSettings, total=False):
    """What decides how texts are cut; see `pipeline.recipes.views.text_settings`.

    Attributes:
        tokenizer: cuts the texts of both sides.
        tokenization: the version of the rules by which texts are cut, so that artifacts of other
            rules are not taken from a cache.
        source_tokenizer: cuts those of the source, if it differs.
        units: what words are cut into: `"characters"`, `"subwords"` or `"preset"`.
        preset: the pre-trained model whose units they are.
        source_units: `"words"` where the source's words stay whole.
    """

    tokenization: int
    source_tokenizer: TokenizerSettings
    units: str
    preset: str
    source_units: str


class VocabularySettings(TextSettings, total=False):
    """What decides the vocabularies; see `pipeline.recipes.views.vocabulary_settings`.

    Attributes:
        source_features: columns whose tags are counted.
        dictionary, copy_lexicon: paths of lexicons.
        dictionary_digest, copy_lexicon_digest, preset_digest: the SHA-256 of what these hold.
        characters: true where words are composed of them.
        entities: how many of a text's entities have an id of their own.
        multigrams: true where a multigram model of the source texts is learned.
    """

    source_features: list[str]
    dictionary: str
    copy_lexicon: str
    dictionary_digest: str
    copy_lexicon_digest: str
    preset_digest: str
    characters: bool
    entities: int
    multigrams: bool


class SubwordsSettings(TextSettings):
    """What decides how words are cut into units; see `pipeline.recipes.views.subwords_settings`.

    Attributes:
        pieces: how many pieces a side's model has at most.
        joint: whether both sides share one model.
        longest: how many units a text may have that is to be served.
    """

    pieces: int
    joint: bool
    longest: int


class SpanSettings(TypedDict):
    """How many tokens a copied span has, at most and at least."""

    max_span: int
    min_span: int


class TransformSettings(TextSettings, total=False):
    """What decides the Transform graph; see `pipeline.recipes.views.transform_settings`.

    Attributes:
        spans: makes labels of copied spans.
        pointers: makes labels of pointers: `"dictionary"` or `"entities"`.
        entity_feature: the column that tags entities.
        entities: how many of a text's entities have an id of their own.
        translate: what translates a copied word: `"dictionary"` or `"lexicon"`.
        lexicon_rows: true where a word's translations are read by number.
        word_length: how many characters of a word are read.
        word_ends: what finds the words that segmentation begins with: `"script"`, `"kana"` or
            `"multigrams"`.
        copy_lexicon: true where a copy lexicon replaces phrases.
        source_features: columns of tags.
        surface_features: features that the graph makes of the source's tokens.
        corpora: patterns of the files of each corpus of a mixture.
        words: true where training cuts words into other units in each epoch.
        term_share: the share of training pairs with terms of a glossary.
    """

    spans: SpanSettings
    pointers: str
    entity_feature: str
    entities: int
    translate: str
    lexicon_rows: bool
    word_length: int
    word_ends: str
    copy_lexicon: bool
    source_features: list[str]
    surface_features: list[str]
    corpora: list[str]
    words: bool
    term_share: float


class TransformConfig(TransformSettings, total=False):
    """What a preprocessing function of Transform gets: settings, and the folders of artifacts.

    Attributes:
        vocabulary_uri: what Vocabulary wrote.
        lexicon_uri, subwords_uri: what Lexicon and Subwords wrote, where the recipe has them.
    """

    vocabulary_uri: str
    lexicon_uri: str
    subwords_uri: str
