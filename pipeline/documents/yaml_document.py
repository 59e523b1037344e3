"""YAML with keys and texts, as Rails has it."""

import json
import re
from collections.abc import Callable, Iterator, Sequence

import yaml

from pipeline.documents import languages
from pipeline.documents.document import DocumentError
from pipeline.documents.edits import Edit
from pipeline.documents.options import Options
from pipeline.documents.resource_document import ResourceDocument
from pipeline.documents.resource_nodes import Node, Value
from pipeline.readers.inline_text import InlineText, Mark, Piece, with_tags

_STRING = "tag:yaml.org,2002:str"
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)+")
_BLOCK = re.compile(r"(?P<sign>[|>])(?P<how>[0-9+-]*)(?P<rest>[^\n]*\n)(?P<body>.*)", re.DOTALL)
_UNPRINTABLE = re.compile(
    "[^\t\n\u0020-\u007e\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
# What other readers of YAML 1.1 take for a truth value.
_WORDS = frozenset("y n yes no on off true false null nil nan inf".split())


class YamlDocument(ResourceDocument):
    """A YAML file whose strings are texts. A language at its root becomes that of the target.

    Args:
        path: its name in messages.
        content: its bytes.
        options: the language of the translations, and what is translated already.

    Raises:
        DocumentError: it is not valid, no mapping, or names its language while that of the
            translations is unknown.
    """

    separator = "\n"

    def __init__(self, path: str, content: bytes, options: Options) -> None:
        self._rename: list[Edit] = []
        self._target = options.language
        super().__init__(path, content, options)

    def read(self, text: str) -> list[Node]:
        """See `ResourceDocument`."""
        root = self._composed(text)
        if not isinstance(root, yaml.MappingNode):
            raise DocumentError(f"{self._path} is not a YAML mapping of keys and texts.")
        self._seen: set[int] = set()
        if len(root.value) == 1 and isinstance(root.value[0][1], yaml.MappingNode):
            key, value = root.value[0]
            if languages.normalize(str(key.value)):
                if not self._target:
                    raise DocumentError(
                        f"{self._path} names its language '{key.value}': name the language of the "
                        "translations with --target-language."
                    )
                place = key.start_mark.index, key.end_mark.index
                self._rename = [(*place, self._target)]
                root = value
        return self._nodes(text, root)

    def adapted(self, added: str, node: Node, neighbour: Node | None) -> str:
        """See `ResourceDocument`: lines are indented as the neighbour is."""
        if neighbour is None or node.begin is None or neighbour.begin is None or not self._existing:
            return added
        source, target = self.text, self._existing.text
        indents = [
            begin - text.rfind("\n", 0, begin) - 1
            for text, begin in ((source, node.begin), (target, neighbour.begin))
        ]
        more = indents[1] - indents[0]
        if more > 0:
            return re.sub(r"^(?=.)", " " * more, added, flags=re.MULTILINE)
        return re.sub(rf"^ {{,{-more}}}", "", added, flags=re.MULTILINE)

    def extra_edits(self) -> list[Edit]:
        """See `ResourceDocument`."""
        return self._rename

    def _composed(self, text: str) -> "yaml.Node | None":
        try:
            return yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            raise DocumentError(
                f"{self._path} is not valid YAML: see line {line} ({error.problem})."
            ) from None
        except (yaml.YAMLError, RecursionError) as error:
            reason = " ".join(str(error).split())
            raise DocumentError(f"{self._path} is not valid YAML: {reason}.") from None

    def _nodes(self, text: str, parent: yaml.CollectionNode) -> list[Node]:
        nodes: list[Node] = []
        end = -1
        names: set[str] = set()
        for key, value in self._members(parent):
            start = (key or value).start_mark
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else str(len(nodes))
            if key and name in names:
                raise DocumentError(
                    f"{self._path} has the key '{name}' twice: see line {start.line + 1}."
                )
            names.add(name)
            begin, last = end, self._last(text, value, bool(parent.flow_style))
            if begin < 0:
                begin = start.index if parent.flow_style else _first_line(text, start.index)
            node = Node(name, start.line + 1, (begin, last), begin=start.index)
            node.separator = "," if getattr(value, "flow_style", False) else "\n"
            if key:
                node.name = key.start_mark.index, key.end_mark.index
            # An alias shows the node of its anchor again, and a merged key is not the file's own.
            if id(value) not in self._seen and name != "<<":
                self._seen.add(id(value))
                if isinstance(value, yaml.ScalarNode):
                    if value.tag == _STRING:
                        node.value = _value(text, value, bool(parent.flow_style))
                elif isinstance(value, yaml.CollectionNode):
                    node.children = self._nodes(text, value)
            keys = {child.key for child in node.children}
            node.is_plural = (
                isinstance(value, yaml.MappingNode)
                and {"one", "other"} <= keys <= set(languages.CATEGORIES)
                and all(child.value for child in node.children)
            )
            nodes.append(node)
            end = last + 1
        return nodes

    def _members(self, node: yaml.CollectionNode) -> Iterator[tuple[yaml.Node | None, yaml.Node]]:
        if isinstance(node, yaml.MappingNode):
            yield from node.value
        else:
            yield from ((None, value) for value in node.value)

    def _last(self, text: str, value: yaml.Node, is_flow: bool) -> int:
        """Returns where what belongs to a value ends: at the end of its line, or behind it."""
        end = len(text[: value.end_mark.index].rstrip())
        if is_flow:
            return end
        line_end = text.find("\n", end)
        return len(text) if line_end < 0 else line_end


def _first_line(text: str, place: int) -> int:
    """Returns where the line of a place begins, or the comments directly above it."""
    begin = text.rfind("\n", 0, place) + 1
    if text[begin:place].strip():
        return place
    while begin:
        above = text.rfind("\n", 0, begin - 1) + 1
        if not text[above:begin].lstrip().startswith("#"):
            break
        begin = above
    return begin


def _value(text: str, node: yaml.ScalarNode, is_flow: bool) -> Value:
    begin, end = node.start_mark.index, node.end_mark.index
    if found := _PROPERTIES.match(text, begin, end):
        begin = found.end()
    writers: dict[str | None, Callable[[str], str]] = {
        "'": _single,
        None: lambda t: _plain(t, is_flow),
    }
    write = writers.get(node.style, _double)
    if node.style in ("|", ">"):
        end = len(text[:end].rstrip("\r\n"))
        block = _BLOCK.fullmatch(text, begin, end)
        if block:
            found = re.search(r"^( +)\S", block["body"], re.MULTILINE)
            indent, head, sign = found[1] if found else "", block["rest"], block["sign"]
            write = lambda t: _block(t, sign, head, indent)  # noqa: E731

    def written(parts: Sequence[Sequence[Piece]]) -> str:
        return write("".join(p.raw if isinstance(p, Mark) else p for p in parts[0]))

    return Value((begin, end), [InlineText(with_tags(node.value))], written)


def _double(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda match: _escape(match[0]), quoted)


def _escape(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if letter <= "\uffff" else f"\\U{ord(letter):08x}"


def _single(text: str) -> str:
    if "\n" in text or "\t" in text or _UNPRINTABLE.search(text):
        return _double(text)
    return "'" + text.replace("'", "''") + "'"


def _plain(text: str, is_flow: bool) -> str:
    if not text[:1].isalpha() or "\n" in text or "\t" in text or _UNPRINTABLE.search(text):
        return _double(text)
    try:
        same = yaml.safe_load(f"{{a: {text}, b: c}}" if is_flow else f"a: {text}")
    except yaml.YAMLError:
        return _double(text)
    expected = {"a": text, "b": "c"} if is_flow else {"a": text}
    return text if same == expected and text.lower() not in _WORDS else _double(text)


def _block(text: str, sign: str, head: str, indent: str) -> str:
    """Returns a text as a block of lines, or in quotes if it cannot be one.

    Args:
        text: the text.
        sign: that of the block, `|` or `>`; several lines are not folded.
        head: the rest of its first line, with the line's end.
        indent: what its lines begin with.
    """
    body = text.removesuffix("\n")
    lines = body.split("\n")
    if (
        not indent
        or not lines[0].strip()
        or not lines[-1].strip()
        or lines[0][0] in " \t"
        or "\t" in text
        or _UNPRINTABLE.search(text)
    ):
        return _double(text)
    chomp = "" if text.endswith("\n") else "-"
    line_end = "\r\n" if head.endswith("\r\n") else "\n"
    written = line_end.join(indent + line if line else "" for line in lines)
    return f"{sign if len(lines) == 1 else '|'}{chomp}{head}{written}"
