"""Plural forms: the rule of the catalogue says which form translates which text."""

import pytest

from pipeline.readers.plural_forms import GERMANIC, PluralForms, plural_forms_of
from tests.pipeline.readers.data_files import config, read, write

ARABIC = "n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5"
SLOVENIAN = "(n%100==1 ? 1 : n%100==2 ? 2 : n%100==3 || n%100==4 ? 3 : 0)"
RUSSIAN = "(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2)"


@pytest.mark.parametrize(
    ("count", "rule", "singular", "plural", "only_for_one"),
    [
        (6, ARABIC, 1, 4, True),
        (4, SLOVENIAN, 1, 0, False),
        (3, RUSSIAN, 0, 2, False),
        (1, "0", 0, 0, False),
        (2, "n > 1", 0, 1, False),
        (2, "n == 1", 1, 0, True),
        (3, "(n == 0 || n == 1) ? 0 : n != 0 && n % 1000000 == 0 ? 1 : 2", 0, 2, False),
        (5, "n==1 ? 0 : n==2 ? 1 : n<7 ? 2 : n<11 ? 3 : 4", 0, 4, True),
    ],
)
def test_rules(count, rule, singular, plural, only_for_one):
    header = f"Language: xx\nPlural-Forms:  nplurals={count}; plural={rule};\nX: plural=9;\n"
    assert plural_forms_of(header) == PluralForms(count, singular, plural, only_for_one)


def test_no_rule_and_rules_that_cannot_be_read():
    assert plural_forms_of("Language: xx\nX: y\n") == GERMANIC
    assert plural_forms_of("Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\n") == GERMANIC
    for rule in ("n +", "m > 1", "__import__('os')", "n / 0", "n % 3", "-1", "(" * 200, "", "n**n"):
        assert plural_forms_of(f"Plural-Forms: nplurals=2; plural={rule};\n") is None
    assert plural_forms_of("Plural-Forms: plural=n > 1;\n") is None


def _catalogue(rule, *forms):
    lines = ['msgid ""', 'msgstr ""', f'"Plural-Forms: {rule}\\n"', "", 'msgid "one"']
    lines += ['msgid_plural "more"', *(f'msgstr[{i}] "{form}"' for i, form in enumerate(forms))]
    return "\n".join(lines) + "\n"


def _texts(records):
    return [(record.source, record.target) for record in records]


def test_forms_of_a_catalogue(tmp_path):
    path = tmp_path / "a.po"
    write(path, _catalogue(f"nplurals=4; plural={SLOVENIAN};", "datotek", "a", "b", "c"))
    pairs, rejects = read(path)
    assert _texts(pairs) == [("one", "a"), ("more", "datotek")]
    assert [(reject.reason, reject.text) for reject in rejects] == [
        ("plural form left out: msgstr[2]", "more\tb"),
        ("plural form left out: msgstr[3]", "more\tc"),
    ]
    pairs, rejects = read(write(path, _catalogue("nplurals=1; plural=0;", "a")))
    assert _texts(pairs) == [("one", "a"), ("more", "a")] and not rejects
    pairs, rejects = read(write(path, _catalogue(f"nplurals=6; plural={ARABIC};", *"abcdef")))
    assert _texts(pairs) == [("one", "b"), ("more", "e")] and len(rejects) == 4


def test_forms_that_the_rule_does_not_fit_are_rejected(tmp_path):
    path = tmp_path / "a.po"
    for rule, forms in (
        ("nplurals=2; plural=n > 1;", "abc"),
        ("nplurals=2; plural=n +;", "ab"),
        ("nplurals=INTEGER; plural=EXPRESSION;", "abcdef"),
    ):
        pairs, rejects = read(write(path, _catalogue(rule, *forms)))
        assert not pairs and len(rejects) == len(forms)
        assert all("Plural-Forms" in reject.reason for reject in rejects)


def test_both_texts_of_an_entry_cannot_be_one(tmp_path):
    content = _catalogue("nplurals=2; plural=n > 1;", "un", "des").replace('"more"', '"one"')
    pairs, (reject,) = read(write(tmp_path / "a.po", content), config())
    assert _texts(pairs) == [("one", "un")] and "another translation" in reject.reason
