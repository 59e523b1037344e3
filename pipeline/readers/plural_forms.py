"""Finds the forms of a plural entry that translate the singular and the plural."""

import collections
import dataclasses
import gettext
import re

# As in GNU gettext's runtime: each value ends at a semicolon or a line's end.
_COUNT = re.compile(r"nplurals=[ \t]*([0-9]{1,4})[ \t]*(?=[;\n]|\Z)")
_RULE = re.compile(r"(?<![A-Za-z])plural=([^;\n]*)")
_FIELD = re.compile(r"^Plural-Forms:(.*)", re.IGNORECASE | re.MULTILINE)
# A template's stand-in for a rule.
_TEMPLATE = "nplurals=INTEGER"
# The rules use remainders of 10, 100 and 1,000, and rarely that of a million.
_LARGE_NUMBERS = range(1000, 3000)


@dataclasses.dataclass(frozen=True)
class PluralForms:
    """The forms of a language.

    Attributes:
        count: how many it has.
        singular: the index of the form for one thing.
        plural: the index of the form for most large numbers of things.
        only_for_one: whether the form for one thing serves no other number.
    """

    count: int
    singular: int
    plural: int
    only_for_one: bool = True


#: gettext's rule for a header without one: one form for 1, another for the rest.
GERMANIC = PluralForms(2, 0, 1)


def plural_forms_of(header: str) -> PluralForms | None:
    """Returns the forms by the field `Plural-Forms` of a header.

    Args:
        header: the whole header; one without the field means `GERMANIC`.

    Returns:
        None if the rule cannot be read, or names a form that does not exist.
    """
    field = _FIELD.search(header)
    if not field or _TEMPLATE in field.group(1):
        return GERMANIC
    count = _COUNT.search(header, field.start(1))
    rule = _RULE.search(header, field.start(1))
    if not count or not rule:
        return None
    try:
        # The parser of Python's own gettext, which runs only the rule's arithmetic.
        form = gettext.c2py(rule.group(1).strip())
        singular = form(1)
        seen = collections.Counter(map(form, _LARGE_NUMBERS))
        only_for_one = all(form(number) != singular for number in (0, *range(2, 1000)))
    except (ValueError, ArithmeticError, RecursionError, MemoryError, SyntaxError):
        return None
    plural = seen.most_common(1)[0][0]
    number = int(count.group(1))
    if not all(0 <= index < number for index in (singular, plural, *seen)):
        return None
    return PluralForms(number, singular, plural, only_for_one)
