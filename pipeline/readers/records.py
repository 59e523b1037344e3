"""Records: a pair of texts, or a reject with its reason."""

import re
import typing

from pipeline.recipes.sections import DataConfig
from pipeline.text import tokenization

REJECT_COLUMNS = ("file", "line", "reason", "text")
# A gettext or JSON text may contain tabs, line feeds and carriage returns, but no other control
# character.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# A rejected record's text helps people recognise it; file and line lead to the full text.
_REJECT_TEXT_LIMIT = 1000
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_ESCAPED = re.compile(r"[\\\t\n\r]")
_HELD_BACK = "also in a given "
#: A kind of reject that is not an error of the data: a plural form that translates neither the
#: singular nor the plural of its entry.
LEFT_OUT = "plural form left out"
#: Another: a unit of a memory in other languages than the recipe's.
OTHER_LANGUAGES = "no text in this language"
#: Another: a text that is marked as one that stays as it is.
NOT_TRANSLATABLE = "not to be translated"
#: All of them.
NO_ERRORS = frozenset({LEFT_OUT, OTHER_LANGUAGES, NOT_TRANSLATABLE})


class Pair(typing.NamedTuple):
    """A source and its target, stripped of white space at both ends.

    They are in lower case if `data.lowercase` is set.

    Attributes:
        source, target: the texts.
        file: relative to the plan's base directory; for aligned files, the source file.
        line: counts from 1. An entry of a .mo file has no line, so it is the entry's number.
        features: for each of `data.source_features` the tags of the source's tokens, separated by
            one space, and then the value of each of `data.slice_features`.
        flags: of a gettext entry, from its comment `#,`, such as `c-format`.
    """

    source: str
    target: str
    file: str
    line: int
    features: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


class Reject(typing.NamedTuple):
    """A record that was rejected: its place, the reason, and its text (shortened, unescaped)."""

    file: str
    line: int
    reason: str
    text: str


#: A record of a file.
Record: typing.TypeAlias = Pair | Reject


def judge(
    source: str,
    target: str,
    file: str,
    line: int,
    config: DataConfig,
    features: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
) -> Record:
    """Returns the `Pair`, or the `Reject` with the reason."""
    reason = ""
    texts = (source, target, *features)
    if any(map(_SURROGATE.search, texts)):
        reason = "not valid UTF-8"
    elif any(map(_CONTROL.search, texts)):
        reason = "control character"
    else:
        tokenizer = tokenization.Tokenizer.of(config)
        source_tokenizer = tokenization.Tokenizer.of(config, "source")
        source, target = (tokenizer.normalize(text.strip()) for text in (source, target))
        features = tuple(" ".join(tags.split()) for tags in features)
        if not source:
            reason = "empty source"
        elif not target:
            reason = "empty target"
        elif max(len(source), len(target)) > config.max_characters:
            reason = f"longer than {config.max_characters} characters"
        elif max(source_tokenizer.count(source), tokenizer.count(target)) > config.max_tokens:
            reason = f"longer than {config.max_tokens} tokens"
        elif config.drop_identical and source == target:
            reason = "target equals source"
        else:
            tokens = tokenizer.count(source)
            for name, tags in zip(config.source_features, features):
                if len(tags.split()) != tokens:
                    reason = f"'{name}' does not have one tag per token of the source"
    if reason:
        return reject(file, line, reason, "\t".join((source, target, *features)))
    return Pair(source, target, file, line, features, flags)


def reject(file: str, line: int, reason: str, text: str | bytes) -> Reject:
    """Returns the `Reject` of a record; `text` may be bytes, and of any length."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    return Reject(file, line, reason, shorten(text))


def reject_duplicate(pair: Pair, first_file: str, first_line: int) -> Reject:
    """Returns the `Reject` of a pair that was already seen at `first_file`, line `first_line`."""
    text = shorten(f"{pair.source}\t{pair.target}")
    return Reject(pair.file, pair.line, f"duplicate of {first_file}:{first_line}", text)


def reject_held_back(pair: Pair, split: str, file: str, line: int) -> Reject:
    """Returns the `Reject` of a training pair that also occurs in a file of another split."""
    text = shorten(f"{pair.source}\t{pair.target}")
    return Reject(pair.file, pair.line, f"{_HELD_BACK}{split} file: {file}:{line}", text)


def reason_kind(reason: str) -> str:
    """Returns the reason without its particulars, for counting: all duplicates are of one kind."""
    if reason.startswith("duplicate of "):
        return "duplicate"
    return reason.partition(": ")[0]


def format_reject(reject: Reject) -> str:
    """Returns a line for `rejects.tsv`, without its end.

    Tab, line end and backslash are escaped in every column.
    """
    return "\t".join(
        _ESCAPED.sub(lambda match: _ESCAPES[match.group()], str(field)) for field in reject
    )


def shorten(text: str) -> str:
    """Returns a text that is valid UTF-8 and short enough to read."""
    # A lone surrogate (undecodable byte, or a bad JSON escape) cannot be written as UTF-8.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    if len(text) <= _REJECT_TEXT_LIMIT:
        return text
    return f"{text[:_REJECT_TEXT_LIMIT]}... ({len(text)} characters)"
