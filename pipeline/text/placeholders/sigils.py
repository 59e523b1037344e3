"""Names behind a sigil: `:name`, `@name`, `!name`, `$NAME`, `$1`, `$t(key)`, `__name__`."""

from pipeline.text.placeholders.syntax import ALPHABETS, Dialect

_NAME = r"[A-Za-z][A-Za-z0-9_]*"

#: `:name`. Two letters or more, so that `:D` and `:p` stay what they are; in `a:b`, `5:30` and
#: `::before` something before the colon keeps it text.
LARAVEL = Dialect((r":[A-Za-z][A-Za-z0-9_]+",), (r"[:)\]\\]:[A-Za-z]",))

#: `@name`, and `@:key` of vue-i18n.
AT = Dialect((rf"@:?{_NAME}(?:[.\-][A-Za-z0-9_]+)*",), (r"[.+/\-@]@",))

#: `!name`, `%name`, and names with hyphens, beside `@name` and `:name`.
DRUPAL = Dialect(
    (rf"[!%]{_NAME}(?:-[A-Za-z0-9_]+)*",),
    (rf"[{ALPHABETS}]+[!%]{_NAME}",),
)

#: `$HOME`, `$USER_NAME$`.
DOLLAR = Dialect((r"\$[A-Z_]{2,}[0-9]*\$\B|\$[A-Z_]{2,}",))
#: `$1`, of MediaWiki and Chrome. A price looks like it.
POSITIONS = Dialect((r"\$[0-9]{1,2}",), (r"\$[0-9]+(?:[.,][0-9]|[0-9]{2})",))
#: `$name`, of PHP, Perl and shells.
VARIABLES = Dialect((rf"\${_NAME}(?:->{_NAME})*",))

#: `$t(key)`, `$t(key, {"count": 1})`, `__name__`.
I18NEXT = Dialect(
    (r"\$t\([^()]*\)", "__[a-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*__|__MSG_[A-Za-z0-9_@]+__"),
)

#: `[X0X]`, which Weblate writes for each placeholder before it asks a machine to translate.
MASKS = Dialect((r"\[X[0-9]+X\]",))
