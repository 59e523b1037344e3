"""The directives of printf and its kin: C, Objective-C, Java, Python, PHP, Perl, Ruby and Qt.

    %[position$][flags][width][.precision][length]conversion

All patterns are valid for RE2 and for `regex`.
"""

_NUMBER = r"[0-9]+"
#: `*`, `*1$` or a number.
_SIZE = r"(?:[0-9]+|\*(?:[0-9]+\$)?)"
_POSITION = r"(?:[0-9]+\$)"
_LENGTH = r"(?:hh|h|ll|l|j|z|t|L|q|Z|I64|I32|w[0-9]+|wf[0-9]+)"
# `%tY`, `%1$tB`: Java's dates and times.
_JAVA_DATE = "[tT][HIklMSLNpzZsQBbhAaCYyjmdeRTrDFc]"
_CONVERSION = "[diouxXeEfFgGaAcCsSpnmrbBhHDOUvTt@]"
#: `%<PRIu64>`: gettext's name for a width that depends on the system.
_SYSTEM_DEPENDENT = "<(?:PRI|SCN)[A-Za-z0-9]+>"

# The flags, without the blank.
_FLAGS = r"[\-+#0'I,(]*"
_SIGNS = rf"{_SIZE}?(?:\.{_SIZE}?)?"
_END = rf"(?:{_LENGTH}?(?:[diouxXeEfFgGaAcCsSpn]|{_SYSTEM_DEPENDENT})|{_JAVA_DATE}|[mrbBhHDOU@])"

#: What may stand between `%` and the end of a directive without a position.
UNNUMBERED = rf"{_FLAGS}{_SIGNS}{_END}"
