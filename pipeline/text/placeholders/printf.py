"""The directives of printf and its kin: C, Objective-C, Java, Python, PHP, Perl, Ruby and Qt.

    %[position$][flags][width][.precision][length]conversion

In prose a per cent sign follows a number: `20%discount`, `10% off` and `100 % d'accord` hold no
directive. `20%d` and `20%02d` do: their directive ends a word.
"""

from pipeline.text.placeholders.syntax import LETTERS, SPACE, Dialect

# `*`, `*1$` or a number.
_SIZE = r"(?:[0-9]+|\*(?:[0-9]+\$)?)"
_POSITION = r"(?:[0-9]+\$)?"
_SIZES = rf"{_SIZE}?(?:\.{_SIZE}?)?"
# Flags without the blank, and with it.
_FLAGS = r"[\-+#0'I,(]*"
_FLAGS_AND_BLANK = r"[\-+#0'I,( ]*"
_LENGTH = r"(?:hh|h|ll|l|j|z|t|L|q|Z|I64|I32)?"
# `%<PRIu64>` is gettext's name for an integer whose length depends on the system.
_C_END = rf"(?:{_LENGTH}[diouxXeEfFgGaAcCsSpn]|<(?:PRI|SCN)[A-Za-z0-9]+>)"
# `%tY`, `%1$tB`: dates and times.
_JAVA_END = "(?:[tT][HIklMSLNpzZsQBbhAaCYyjmdeRTrDFc]|[bBhH])"
# Perl's and PHP's binary numbers, Python's `%r`, glibc's `%m`, Objective-C's objects.
_OTHER_END = "[bBmrDOU@]"
_END = f"(?:{_C_END}|{_JAVA_END}|{_OTHER_END})"

_PLAIN = rf"{_POSITION}{_FLAGS}{_SIZES}{_END}"
# `%#@name@` of Apple's stringsdict files.
_VARIABLE = rf"{_POSITION}#@[A-Za-z0-9_]+@"
# A blank as a flag: of signed numbers, where no word follows.
_BLANK = (
    rf"[\-+#0']* [\-+#0'I]*(?:{_SIZE}(?:\.{_SIZE}?)?{_LENGTH}[diouxXeEfFgGaA]|{_LENGTH}[dfFgG])"
)
# Python's `%(name)s`.
_NAMED = rf"\([^(){{}}<>%\n]+\)[\-+ #0]*{_SIZES}{_LENGTH}[diouxXeEfFgGcrsab]"

_LETTER = f"[{LETTERS}]"
_NUMBER = "[0-9]+(?:[.,][0-9]+)*"

#: `%s`, `%1$s`, `%-10.2f`, `%*d`, `%<PRIu64>`, `%@`, `%tY`, `%(name)s`, and `%%`.
PRINTF = Dialect(
    (f"%(?:{_VARIABLE}|{_NAMED}|{_PLAIN}|{_BLANK}|%)",),
    (
        rf"{_NUMBER}%(?:{_NAMED}|{_PLAIN}){_LETTER}",
        rf"{_NUMBER}[{SPACE}]?% ",
        rf"%{_BLANK}['’{LETTERS}]",
    ),
)
#: Directives as a compiler reads them, whatever is beside them: for texts that are known to be
#: format strings, such as gettext's entries with a flag.
STRICT_PRINTF = Dialect(
    (f"%(?:{_VARIABLE}|{_NAMED}|{_POSITION}{_FLAGS_AND_BLANK}{_SIZES}{_END}|%)",)
)

#: `%1`, `%L1`, `%n`, `%Ln`.
QT = Dialect((r"%L?(?:[1-9][0-9]?|n)",), (rf"{_NUMBER}%L?n{_LETTER}",))

#: `%{name}`, `%<name>s`, `%-10<name>s`.
RUBY = Dialect(
    (
        rf"%{_FLAGS}{_SIZES}\{{[^{{}}{SPACE}]+\}}",
        rf"%{_FLAGS}{_SIZES}<[A-Za-z_][A-Za-z0-9_]*>{_FLAGS}{_SIZES}[diouxXeEfgGcpsbB]",
    ),
)

#: strftime's: `%Y-%m-%d`. Languages order and choose them differently, so nothing is guaranteed.
STRFTIME = Dialect(
    (r"%(?:[\-_0^#]?[0-9]*[EO]?[aAbBcCdDeFgGhHIjklmMnNpPrRsStTuUVwWxXyYzZ+%])",),
    (rf"{_NUMBER}%[a-zA-Z]{_LETTER}",),
)

# A name that could be a directive with a length, such as `ld` of `%ld%d`, has four letters or more.
_FIRST = "[a-gikm-pr-suv-yA-KM-Y_]"
_REST = r"[A-Za-z0-9_]+(?:[.\-][A-Za-z0-9_]+)*"
#: `%name%`, also of Windows. No word may continue after it: `%dx%d` is two directives.
SYMFONY = Dialect(
    (rf"%(?:{_FIRST}{_REST}|[hjlqtzLZ][A-Za-z0-9_]{{2}}{_REST})%\B",),
    (rf"{_NUMBER}%[A-Za-z_]{{2}}[A-Za-z0-9_.\-]*%",),
)
