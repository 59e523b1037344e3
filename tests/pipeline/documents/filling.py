"""Fills documents with answers, as the command does."""

import re

from pipeline.documents.document import with_ends_of

_KEPT = re.compile(
    r"<!--.*?-->|<[^>]*>|&\w+;|%(?:1\$)?[a-z@]|%#@\w+@|%?\{+[^{}]*\}+|[^<&%{]+|.", re.DOTALL
)


def shout(text):
    """Returns a text in upper case, but for its tags, entities and placeholders."""
    return _KEPT.sub(lambda m: m[0] if m[0][0] in "<&%{" else m[0].upper(), text)


def filled(document, answer):
    """Returns a document with the answer to each of its texts that is not refused."""
    texts = {}
    for place, segment in enumerate(document.segments):
        translation = with_ends_of(segment.text, answer(segment.text))
        if not document.refuse(place, translation):
            texts[place] = translation
    return document.filled(texts, "From a test").decode()
