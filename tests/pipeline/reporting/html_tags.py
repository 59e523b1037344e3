"""A parser of pages that checks their tags."""

import html.parser


class Tags(html.parser.HTMLParser):
    """Collects tags and attributes, and checks that tags close in order."""

    VOID = {"meta"}

    def __init__(self):
        super().__init__()
        self.tags, self.open = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


def parse(page):
    """Returns (tag, attributes) of each tag of a page whose tags must all be closed."""
    parser = Tags()
    parser.feed(page)
    parser.close()
    assert not parser.open
    return parser.tags
