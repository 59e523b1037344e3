"""PHP files that return or assign arrays of texts, as Laravel's and CodeIgniter's do."""

import dataclasses
import re
from collections.abc import Callable, Sequence

from pipeline.documents.document import DocumentError
from pipeline.documents.resource_document import ResourceDocument
from pipeline.documents.resource_nodes import PIPE, Node, Value, forms_of
from pipeline.readers.inline_text import InlineText, Mark, Piece, with_tags
from pipeline.readers.line_numbers import line_of

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\r\n]*|\#(?!\[)[^\r\n]*|/\*.*?\*/)
    |'(?P<single>(?:[^'\\]|\\.)*)'
    |"(?P<double>(?:[^"\\]|\\.)*)"
    |<<<[ \t]*(?P<quote>['"]?)(?P<heredoc>\w+)(?P=quote)\r?\n.*?\n[ \t]*(?P=heredoc)\b
    |(?P<variable>\$\w+)
    |(?P<word>[\w\\]+(?:\.\d+)?)
    |(?P<sign>=>|\?>|[^\s'"])""",
    re.DOTALL | re.VERBOSE,
)
_OPEN = re.compile(r"<\?php\b", re.IGNORECASE)
_INTERPOLATION = re.compile(
    r"\{\$[^{}]*\}|\$\{[^{}]*\}|\$[A-Za-z_]\w*(?:->[A-Za-z_]\w*|\[[^\[\]]*\])?"
)
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]+)\}|x([0-9a-fA-F]{1,2})|([0-7]{1,3})|([nrtvef\\$\"]))")
_ESCAPED = {
    "n": "\n", "r": "\r", "t": "\t", "v": "\v", "e": "\x1b", "f": "\f", "\\": "\\", "$": "$",
    '"': '"',
}  # fmt: skip
_WRITTEN = {
    "\\": r"\\", '"': r"\"", "$": r"\$", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v",
    "\f": r"\f", "\x1b": r"\e",
}  # fmt: skip
_CLOSING = {"[": "]", "(": ")", "{": "}"}


@dataclasses.dataclass(frozen=True)
class _Token:
    """A token without white space: its kind, text, and place."""

    kind: str
    text: str
    begin: int
    end: int


class PhpDocument(ResourceDocument):
    """A PHP file with arrays whose strings are texts. It is read, never run.

    Args:
        path: its name in messages.
        content: its bytes.
        options: the language of the translations, and what is translated already.

    Raises:
        DocumentError: it has no array of texts, or brackets that are not closed.
    """

    def read(self, text: str) -> list[Node]:
        """See `ResourceDocument`."""
        start = _OPEN.search(text)
        if not start:
            raise DocumentError(f"{self._path} is not a PHP file: it lacks <?php.")
        self._tokens: list[_Token] = []
        place = self._start = start.end()
        while place < len(text):
            match = _TOKEN.match(text, place)
            if not match:
                raise self._error(text, place, "a string that is not closed")
            kind = match.lastgroup or ""
            if kind != "space":
                self._tokens.append(_Token(kind, match[0], *match.span()))
            place = match.end()
        nodes: list[Node] = []
        number = 0
        while number < len(self._tokens):
            token = self._tokens[number]
            if self._opens_array(number):
                node, number = self._array(text, number, "", token.begin)
                nodes += node.children
                self.separator = ","
            elif token.text == "=" and self._is_assigned(number):
                node, number = self._assigned(text, number)
                nodes.append(node)
            else:
                number += 1
        if not nodes:
            raise DocumentError(f"{self._path} has no array of keys and texts.")
        return nodes

    def _error(self, text: str, place: int, what: str) -> DocumentError:
        line = line_of(text, place)
        return DocumentError(f"{self._path} has {what}: see line {line}.")

    def _text(self, number: int) -> str:
        return self._tokens[number].text if 0 <= number < len(self._tokens) else ""

    def _opens_array(self, number: int) -> bool:
        if self._text(number).lower() == "array":
            return self._text(number + 1) == "("
        before = self._text(number - 1)
        return self._text(number) == "[" and (
            before.lower() in ("return", "=", "(", ",", "=>") and bool(before)
        )

    def _is_assigned(self, number: int) -> bool:
        """Whether a string is assigned to an element: `$lang['key'] = 'text';`."""
        return (
            self._text(number - 1) == "]"
            and self._text(number + 2) == ";"
            and self._tokens[number + 1].kind in ("single", "double")
        )

    def _assigned(self, text: str, number: int) -> tuple[Node, int]:
        begin = number
        while begin and self._tokens[begin - 1].text not in (";", "}", "{"):
            begin -= 1
        value = self._tokens[number + 1]
        key = text[self._tokens[begin].begin : self._tokens[number - 1].end]
        first = self._tokens[begin - 1].end if begin else self._start
        node = Node(key, 0, (first, self._tokens[number + 2].end), _value(value))
        node.begin = self._tokens[begin].begin
        node.line = line_of(text, node.begin)
        return node, number + 2

    def _array(self, text: str, number: int, key: str, chunk: int) -> tuple[Node, int]:
        """Returns the node of an array, and the number of the token behind it."""
        opening = number + (self._text(number).lower() == "array")
        closing = _CLOSING[self._text(opening)]
        line = line_of(text, self._tokens[number].begin)
        node = Node(key, line, (chunk, 0), separator=",")
        begin = self._tokens[opening].end
        number = opening + 1
        while self._text(number) != closing:
            if number >= len(self._tokens):
                raise self._error(text, begin, "an array that is not closed")
            child, number = self._element(text, number, closing, str(len(node.children)), begin)
            if child:
                node.children.append(child)
            if self._text(number) == ",":
                begin = self._tokens[number].end
                number += 1
        end = self._tokens[number].end
        node.inner, node.chunk = (self._tokens[opening].end, end - 1), (chunk, end)
        return node, number + 1

    def _element(
        self, text: str, number: int, closing: str, key: str, chunk: int
    ) -> tuple[Node | None, int]:
        """Returns an element of an array, if there is one, and the number behind it."""
        first = number
        # An element ends at the comma or the bracket of its own array.
        depth: list[str] = []
        arrow = None
        end = number
        while end < len(self._tokens) and (depth or self._text(end) not in (",", closing)):
            sign = self._text(end)
            if sign in _CLOSING:
                depth.append(_CLOSING[sign])
            elif depth and sign == depth[-1]:
                depth.pop()
            elif sign == "=>" and not depth and arrow is None:
                arrow = end
            end += 1
        if end >= len(self._tokens):
            raise self._error(text, chunk, "an array that is not closed")
        if arrow is not None:
            key_token = self._tokens[first]
            key = text[key_token.begin : self._tokens[arrow - 1].end]
            key = key[1:-1] if key_token.kind in ("single", "double") else key
            number = arrow + 1
        if number == end:
            return None, end
        if self._opens_array(number):
            node, behind = self._array(text, number, key, chunk)
            if behind == end:
                node.begin = self._tokens[first].begin
                return node, end
        tokens = self._tokens[number:end]
        line = line_of(text, tokens[0].begin)
        node = Node(key, line, (chunk, tokens[-1].end), begin=self._tokens[first].begin)
        if len(tokens) == 1 and tokens[0].kind in ("single", "double"):
            node.value = _value(tokens[0])
        elif any(token.kind in ("single", "double", "heredoc") for token in tokens):
            problem = "an expression, not one string"
            node.value = Value(node.chunk, (), lambda parts: "", problem=problem)
        return node, end


def _value(token: _Token) -> Value:
    raw = token.text[1:-1]
    pieces: list[Piece] = []
    if token.kind == "single":
        pieces += with_tags(re.sub(r"\\([\\'])", r"\1", raw))
        write: Callable[[str], str] = _single
    else:
        write = _double
        end = 0
        for match in re.finditer(rf"\\.|{_INTERPOLATION.pattern}", raw, re.DOTALL):
            if not match[0].startswith("\\"):
                pieces += with_tags(_unescape(raw[end : match.start()]))
                pieces.append(Mark(match[0], match[0]))
                end = match.end()
        pieces += with_tags(_unescape(raw[end:]))

    def written(form: Sequence[Piece]) -> str:
        # Quotes in tags are escaped as all others are.
        return "".join(
            piece.raw
            if isinstance(piece, Mark) and not piece.in_text
            else write(piece if isinstance(piece, str) else piece.raw)
            for piece in form
        )

    return Value(
        (token.begin + 1, token.end - 1),
        [InlineText(form) for form in forms_of(pieces)],
        lambda parts: PIPE.join(map(written, parts)),
    )


def _single(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


def _double(text: str) -> str:
    return "".join(
        _WRITTEN.get(letter) or (f"\\x{ord(letter):02x}" if letter < " " else letter)
        for letter in text
    )


def _unescape(raw: str) -> str:
    def character(match: "re.Match[str]") -> str:
        if match[1] or match[2]:
            return chr(int(match[1] or match[2], 16))
        return chr(int(match[3], 8) & 255) if match[3] else _ESCAPED[match[4]]

    return _ESCAPE.sub(character, raw)
