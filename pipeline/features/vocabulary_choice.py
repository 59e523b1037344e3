"""Chooses the tokens of a vocabulary from the counted tokens."""

import sys
from collections.abc import Mapping

from pipeline.features import pointer_labels
from pipeline.recipes.sections import VocabularyConfig
from pipeline.recipes.settings import VocabularySettings
from pipeline.text import tokenization, units
from pipeline.text.placeholders import ProtectedSyntax, syntax_of
from pipeline.text.placeholders.syntax import TERM_CLASS
from pipeline.text.preset_tokenizers import possible_units


def choose_side(
    side: str,
    counts: Mapping[str, int],
    config: VocabularyConfig,
    settings: VocabularySettings,
    subwords_uri: str | None,
) -> list[str]:
    """Returns the vocabulary of a side.

    Args:
        side: `"source"`, or another that has the target's size.
        counts: from each of its words, or units, to its count.
        config: the recipe's section `vocabulary`.
        settings: how its texts are cut, and how many entities have ids of their own.
        subwords_uri: what Subwords wrote, where words are cut into units.
    """
    tokenizer = units.word_tokenizer(settings, side)
    syntax = tokenizer.syntax
    if tokenizer.terms:
        # The first behind the special tokens; see `tokenization.CLASS_TOKENS`.
        counts = {**counts, TERM_CLASS: sys.maxsize}
    if units.cuts(settings, side):
        if subwords_uri is None:
            raise ValueError("Units other than words need the folder of the Subwords artifact.")
        model = units.read_model(subwords_uri, side)
        touching = tokenizer.kind == "text"
        if settings["units"] == "preset":
            tokens = choose_preset_units(counts, model, config, syntax)
        else:
            tokens = choose_units(counts, model, config.protected_min_count, touching, syntax)
    else:
        size = config.source_size if side == "source" else config.target_size
        tokens = choose_tokens(counts, size, config.min_count, config.protected_min_count, syntax)
    if side != "source":
        return tokens
    # The last ids; a word that reads like one stays unknown.
    entities = [
        pointer_labels.entity_name(number + 1) for number in range(settings.get("entities", 0))
    ]
    return [token for token in tokens if token not in entities] + entities


def choose_tokens(
    counts: Mapping[str, int],
    size: int,
    min_count: int,
    protected_min_count: int,
    syntax: ProtectedSyntax | None = None,
) -> list[str]:
    """Returns the vocabulary of counted tokens.

    Args:
        counts: from token to count.
        size: the most entries, special tokens included.
        min_count: rarer words and punctuation are left out.
        protected_min_count: rarer placeholders, tags, URLs and options are left out, so that they
            are copied.
        syntax: what is protected, by default what recipes protect by default.

    Returns:
        The special tokens, then the others by falling count, then by code point.
    """
    chosen = []
    syntax = syntax or syntax_of()
    for token, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        least = protected_min_count if syntax.is_protected(token) else min_count
        # A vocabulary file has one token per line: a tag that spans lines, of any kind, stays
        # unknown, and is copied.
        if (
            count >= least
            and token not in tokenization.SPECIAL_TOKENS
            and token.splitlines() == [token]
        ):
            chosen.append(token)
    return [*tokenization.SPECIAL_TOKENS, *chosen][:size]


def choose_units(
    counts: Mapping[str, int],
    model: bytes,
    protected_min_count: int,
    touching: bool = True,
    syntax: ProtectedSyntax | None = None,
) -> list[str]:
    """Returns the vocabulary of a side whose words are cut into units.

    It has all units of its model, so that no word is unknown because it is rare.

    Args:
        counts: from unit to count.
        model: the side's sentencepiece model.
        protected_min_count: rarer placeholders, tags, URLs and options are left out, so that they
            are copied.
        touching: whether the tokenizer cuts punctuation off words; see `units.possible_units`.
        syntax: what is protected, by default what recipes protect by default.

    Returns:
        As `choose_tokens`.
    """
    counts = {**dict.fromkeys(units.possible_units(model, touching), 0), **counts}
    return choose_tokens(
        counts, len(tokenization.SPECIAL_TOKENS) + len(counts), 0, protected_min_count, syntax
    )


def choose_preset_units(
    counts: Mapping[str, int], model: bytes, config: VocabularyConfig, syntax: ProtectedSyntax
) -> list[str]:
    """Returns the vocabulary of a side whose texts are cut as a pre-trained model cuts them.

    It has all units of that model, and new ones: characters that the model does not know, white
    space and protected tokens, if they are frequent.

    Args:
        counts: from unit to count.
        model: what cuts the side's texts, see `preset_tokenizers`.
        config: the recipe's section `vocabulary`; no size limits it.
        syntax: what is protected.

    Returns:
        As `choose_tokens`.
    """
    own = {unit: max(counts.get(unit, 0), config.min_count) for unit in possible_units(model)}
    size = len(tokenization.SPECIAL_TOKENS) + len(counts) + len(own)
    return choose_tokens(
        {**counts, **own}, size, config.min_count, config.protected_min_count, syntax
    )
