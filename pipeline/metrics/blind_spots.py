"""What metrics cannot see in some texts, as sentences: a 0 that says nothing of the outputs."""

from collections.abc import Sequence

import regex

from pipeline.metrics.base import primary_language
from pipeline.metrics.sacrebleu_metrics import sacrebleu_bleu
from pipeline.metrics.scored_texts import ScoredTexts, as_tuple
from pipeline.metrics.scoring_options import ScoringOptions

# The share of the references' letters from which on a metric is said to be blind.
_BLIND = 0.1
_LETTER = regex.compile(r"[\p{L}\p{M}\p{N}]")
_ENGLISH_LETTER = regex.compile(r"[A-Za-z0-9]")
# Letters of scripts without spaces that stand together: more than a word has, which is less where
# each letter is a word's part by itself.
_UNCUT = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Khmer}\p{Lao}\p{Myanmar}]{7,}|\p{Han}{5,}"
)
# BLEU's longest n-gram.
_LONGEST = 4
# sacrebleu's tokenizers that cut at white space and punctuation alone.
_CUT_AT_SPACES = ("13a", "intl", "none")
# What toolkits write for a word that their vocabulary lacks.
_UNKNOWN = regex.compile(r"(?<!\S)(?:\[UNK\]|<unk>|⁇)(?!\S)", regex.IGNORECASE)


def blind_spots(
    metric_names: Sequence[str],
    texts: ScoredTexts,
    options: ScoringOptions,
    setting: str = "--language",
) -> list[str]:
    """Returns a sentence for each metric, or kind of metrics, that does not see the references.

    Args:
        metric_names: those that are measured.
        texts: the texts.
        options: how they are scored.
        setting: what a person sets the language with.
    """
    references = [text for several in texts.references for text in as_tuple(several)]
    letters = sum(len(_LETTER.findall(text)) for text in references)
    sentences: list[str] = []
    if not letters:
        return sentences
    rouge = [name for name in metric_names if name.startswith("rouge")]
    if rouge and primary_language(options.language) == "en":
        seen = sum(len(_ENGLISH_LETTER.findall(text)) for text in references)
        if (missed := 1 - seen / letters) > _BLIND:
            sentences.append(
                f"{', '.join(rouge)}: ROUGE for English reads a-z and 0-9 alone and did not see "
                f"{missed:.0%} of the references' letters: give their language with {setting}."
            )
    uncut = sum(len(run) for text in references for run in _UNCUT.findall(text)) / letters
    of_words = [name for name in metric_names if name in ("bleu", "bleu_by_length", "nist")]
    bleu, tokenizer = sacrebleu_bleu(options) if of_words else (None, "")
    if uncut > _BLIND and tokenizer in _CUT_AT_SPACES:
        sentences.append(
            f"{', '.join(of_words)}: words were cut at white space, which {uncut:.0%} of the "
            f"references' letters are written without: give their language with {setting}, such "
            "as zh, ja or th, or read chrF."
        )
    elif bleu and all(len(bleu.tokenizer(text).split()) < _LONGEST for text in references):
        sentences.append(
            f"{', '.join(of_words)}: no reference has {_LONGEST} words, so that BLEU is 0 whatever "
            "the outputs are: read chrF or exact_match."
        )
    if uncut > _BLIND and "ter" in metric_names:
        sentences.append(
            f"ter: TER cuts words at white space, which {uncut:.0%} of the references' letters "
            "are written without: read chrF."
        )
    return sentences


def unknown_words(hypotheses: Sequence[str], baseline: Sequence[str]) -> str:
    """Returns a sentence if one of two systems alone writes unknown words, else nothing.

    Decoding that may not write `[UNK]` takes another word, which is a choice that changes figures.
    """
    ours, theirs = (
        sum(bool(_UNKNOWN.search(text)) for text in texts) for texts in (hypotheses, baseline)
    )
    if bool(ours) == bool(theirs):
        return ""
    who, number, texts = (
        ("The hypotheses", ours, hypotheses)
        if ours
        else ("The baseline's outputs", theirs, baseline)
    )
    return (
        f"{who} hold [UNK] or <unk> in {number} of {len(texts)} texts, the other system's in none: "
        "it may be kept from writing them, so figures differ by that choice too."
    )
