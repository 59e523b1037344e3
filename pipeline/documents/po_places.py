"""Where the parts of each entry are in the text of a .po file, so that it can be edited."""

import dataclasses

from pipeline.readers.po_files import FLAG_MARKS, TOKEN


@dataclasses.dataclass
class PoPlace:
    """The places of one entry's parts, counted in characters.

    Attributes:
        keyword: where its first keyword begins.
        comments: where the comments above it begin; `keyword` if there are none.
        flags: begin and end of its first comment of flags, or None.
        strings: index of a translation to begin and end of its strings.
        last_keyword: begin and end of its last `msgstr` with the index, without the strings.
    """

    keyword: int
    comments: int
    flags: tuple[int, int] | None = None
    strings: dict[int, tuple[int, int]] = dataclasses.field(default_factory=dict)
    last_keyword: tuple[int, int] = (0, 0)


def po_places(text: str) -> dict[int, PoPlace]:
    """Returns the line of each `msgid` to the places of its entry; obsolete ones are left out.

    Entries with a syntax error may be there too, with wrong places.
    """
    places: dict[int, PoPlace] = {}
    place: PoPlace | None = None
    keyword, index, line, counted = "", 0, 1, 0
    comments: int | None = None
    flags: tuple[int, int] | None = None
    obsolete_line = 0
    for token in TOKEN.finditer(text):
        begin, end = token.span()
        line += text.count("\n", counted, begin)
        counted = begin
        kind = token.lastgroup
        if kind == "blank":
            # Comments above a blank line are those of the file, or of a section.
            if token.group().count("\n") > 1:
                comments = None
        elif kind == "obsolete":
            obsolete_line = line
        elif kind in ("comment", "previous"):
            comments = begin if comments is None else comments
            if token.group().startswith(FLAG_MARKS) and flags is None:
                flags = begin, begin + len(token.group().rstrip())
        elif line == obsolete_line:
            place, comments, flags = None, None, None
        elif name := token.group("keyword"):
            if name == "msgctxt" or (name == "msgid" and keyword != "msgctxt"):
                place = PoPlace(begin, begin if comments is None else comments, flags)
                comments = flags = None
            if name == "msgid" and place:
                places[line] = place
            if name == "msgstr" and place:
                index = int(token.group("index") or 0)
                place.last_keyword = begin, end
            keyword = name
        elif kind == "string" and keyword == "msgstr" and place:
            place.strings[index] = place.strings.get(index, (begin, end))[0], end
    return places
