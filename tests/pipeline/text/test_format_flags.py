"""What gettext's flags say of a translation."""

import pytest

from pipeline.text.placeholders.format_flags import breaks_format


@pytest.mark.parametrize(
    "flag, source, target, breaks",
    [
        ("c-format", "%s has %ld", "%2$ld : %1$s", False),
        ("c-format", "%s has %ld", "%s", True),
        ("c-format", "%d files", "%s fichiers", True),
        ("c-format", "%5d%%", "%-3d %%", False),
        ("c-format", "20%discount", "20 %", True),
        ("no-c-format", "20%discount", "20 %", False),
        ("fuzzy", "%s", "", False),
        ("objc-format", "%1$@ and %2$@", "%2$@ et %1$@", False),
        ("python-format", "%(name)s", "%(nom)s", True),
        ("python-format", "%(name)s %(n)d", "%(n)d %(name)s", False),
        ("python-brace-format", "{name!r} {0:>10}", "{0} {name} {name}", False),
        ("python-brace-format", "{name}", "{nom}", True),
        ("python-brace-format", "{{x}} {}", "{}", False),
        ("csharp-format", "{0:N2}", "{1}", True),
        ("qt-format", "%1 of %L2", "%2 de %1", False),
        ("qt-format", "%1 of %2", "%1", True),
    ],
)
def test_a_translation_keeps_the_format_of_its_entry(flag, source, target, breaks):
    assert breaks_format(["x", flag], source, target) is breaks


def test_a_form_of_a_plural_may_leave_the_number_out():
    assert not breaks_format(["c-format"], "%d files", "un fichier", is_plural=True)
    assert breaks_format(["c-format"], "%d files", "%s fichier", is_plural=True)
    assert breaks_format(["c-format"], "%d files", "un fichier")
