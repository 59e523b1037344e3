"""Which orders of protected tokens are legal, by trying every output, in plain Python.

Tokens are strings: `<b>`, `</b>`, `<br>` (void), `%s` and `%d` (directives), `{x}` (kept,
anywhere), `￭` (writes nothing), and words.
"""

import collections
import functools

VOID = "<br>"
JOINER = "￭"
# The numbers of `keras_models.decoding.order`.
NUMBERS = {
    "blank": 0,
    "text": 1,
    "kept": 2,
    "void": 3,
    "empty opening": 4,
    "opening": 5,
    "empty closing": 6,
    "closing": 7,
    "chained": 8,
    "chained behind text": 9,
}


def is_tag(token):
    return token[0] == "<"


def is_directive(token):
    return token[0] == "%"


def is_kept(token):
    return token[0] in "<%{"


def is_text(token):
    return token != JOINER and not is_tag(token)


def pairs_of(tokens):
    """The pairs of positions of tags that are well nested, or None; void tags are in none."""
    pairs, stack = [], []
    for position, token in enumerate(tokens):
        if not is_tag(token) or token == VOID:
            continue
        if token[1] != "/":
            stack.append(position)
        elif stack and tokens[stack[-1]] == "<" + token[2:]:
            pairs.append((stack.pop(), position))
        else:
            return None
    return None if stack else sorted(pairs)


def holds_text(tokens, pair):
    return any(map(is_text, tokens[pair[0] + 1 : pair[1]]))


def is_regular(source):
    """Whether tags are well nested, and each pair holds text, or nothing at all."""
    pairs = pairs_of(source)
    if pairs is None:
        return False
    return all(
        holds_text(source, pair) or set(source[pair[0] + 1 : pair[1]]) <= {JOINER} for pair in pairs
    )


def gaps(tokens):
    """For each tag but the first, whether text stands between the one before it and it."""
    tags = [position for position, token in enumerate(tokens) if is_tag(token)]
    return [holds_text(tokens, pair) for pair in zip(tags, tags[1:])]


def is_legal(source, output):
    """Whether a whole output keeps what its source asks for."""
    if collections.Counter(filter(is_kept, source)) != collections.Counter(filter(is_kept, output)):
        return False
    if list(filter(is_directive, source)) != list(filter(is_directive, output)):
        return False
    if not is_regular(source):
        if list(filter(is_tag, source)) != list(filter(is_tag, output)):
            return False
        return all(after or not before for before, after in zip(gaps(source), gaps(output)))
    pairs = pairs_of(output)
    if pairs is None:
        return False
    # Pairs that are opened alike are the same ones in the same order.
    of_text = collections.defaultdict(list)
    for pair in pairs_of(source):
        of_text[source[pair[0]]].append(holds_text(source, pair))
    for pair in pairs:
        if of_text[output[pair[0]]].pop(0) and not holds_text(output, pair):
            return False
    return True


def may_follow(source, words, max_length):
    """Returns the function from a prefix to what may follow it, None for the end.

    A token may if some output of at most `max_length` tokens goes on so; and, where the source has
    no words, some output without more words.
    """
    choices = [*words, *dict.fromkeys(filter(is_kept, source))]
    has_words = any(is_text(token) and not is_kept(token) for token in source)
    kept = collections.Counter(filter(is_kept, source))

    @functools.cache
    def is_possible(prefix, room, with_words):
        owed = kept - collections.Counter(filter(is_kept, prefix))
        too_many = collections.Counter(filter(is_kept, prefix)) - kept
        if too_many or sum(owed.values()) > room:
            return False
        if is_legal(source, prefix):
            return True
        more = choices if with_words else list(kept)
        return any(is_possible(shortened((*prefix, token)), room - 1, with_words) for token in more)

    def follow(prefix):
        room = max_length - len(prefix) - 1
        allowed = set()
        for token in choices:
            longer = shortened((*prefix, token))
            if is_possible(longer, room, True) and (has_words or is_possible(longer, room, False)):
                allowed.add(token)
        return allowed | ({None} if is_legal(source, prefix) else set())

    return follow


def shortened(tokens):
    """Tokens that are as legal: without joiners, of words side by side the first."""
    result = []
    for token in tokens:
        is_word = is_text(token) and not is_kept(token)
        follows_word = result and is_text(result[-1]) and not is_kept(result[-1])
        if token != JOINER and not (is_word and follows_word):
            result.append(token)
    return tuple(result)


def roles_and_links(source):
    """The roles and links that describe a source to `Order`, by their definition."""
    regular = is_regular(source)
    pairs = {end: begin for begin, end in pairs_of(source)} if regular else {}
    roles, links, seen, last = [], [], {}, None
    for position, token in enumerate(source):
        role, link = "text", None
        if token == JOINER:
            role = "blank"
        elif is_tag(token) and not regular:
            role, link = "chained", last
            if last is not None and holds_text(source, (last, position)):
                role = "chained behind text"
            last = position
        elif token == VOID:
            role = "void"
        elif token.startswith("</"):
            link = pairs[position]
            role = "closing" if holds_text(source, (link, position)) else "empty closing"
        elif is_tag(token):
            end = next(end for end, begin in pairs.items() if begin == position)
            role = "opening" if holds_text(source, (position, end)) else "empty opening"
            link = seen.get(token)
            seen[token] = position
        elif is_directive(token):
            role, link = "kept", seen.get("directive")
            seen["directive"] = position
        elif is_kept(token):
            role = "kept"
        roles.append(NUMBERS[role])
        links.append(0 if link is None else link + 1)
    return roles, links
