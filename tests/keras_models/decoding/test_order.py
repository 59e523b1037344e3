"""Protected tokens stand in an order that is safe: every step against a search of all outputs."""

import math

import numpy as np
import pytest
from keras import ops

from keras_models.decoding import Order, Protection, StepOutput, beam_search, greedy_search
from keras_models.decoding.constraints import constraints
from keras_models.decoding.sampling import draw_uniforms, sample_search
from tests.keras_models import order_oracle
from tests.keras_models.backends import numpy, shared
from tests.keras_models.order_oracle import JOINER

END = 3
# The vocabulary: one word, the joiner, and protected tokens that it knows.
WORDS = ["[PAD]", "[UNK]", "[START]", "[END]", "w", JOINER, "<b>", "%d", "{y}"]
V = len(WORDS)
S = 8
SOURCES = [
    "a <b> b </b>",
    "<b> a </b> <b> c </b>",
    "<b> ￭ </b> a <b> c </b>",
    "<b> <i> a </i> </b>",
    "<b> %s </b> a",
    "<b> %s </b>",
    "<b> %s </b> <i> %d </i>",
    "<b> {x} </b> <i> a </i>",
    "%s a %d %s",
    "%s %d",
    "<b> a <br> </b>",
    "<b> <br> </b> a",
    "<br> <b> a </b>",
    "<b> a <i> </b> </i>",
    "a </b> c <b> %s",
    "<b> a <i> %s </i>",
    "</i> a <i> <b> c </b>",
    "<b> {x} <i> %s {x} </b>",
    "<b> <i> </i> a </b>",
    "<b> </b> <b> a </b>",
    "{x} {y} a {x}",
    "a",
]


def arrays_of(sources):
    """Ids, protected flags, roles, links and a mask of sources, each `[batch, S]`."""
    ids, kept, roles, links = (np.zeros((len(sources), S), "int32") for _ in range(4))
    for row, source in enumerate(sources):
        for position, token in enumerate(source):
            known = WORDS.index(token) if token in WORDS else V + source.index(token)
            ids[row, position] = known
            kept[row, position] = order_oracle.is_kept(token)
        roles[row, : len(source)], links[row, : len(source)] = order_oracle.roles_and_links(source)
    mask = np.arange(S) < np.array([[len(source)] for source in sources])
    return ids, kept.astype(bool), roles, links, mask


def protection_of(kept, roles, links, max_span=1):
    words = np.array([order_oracle.is_kept(word) for word in WORDS])
    words[:4] = False
    blank = np.array([word == JOINER for word in WORDS])
    order = Order(roles, links, ops.convert_to_tensor(blank))
    return Protection(ops.convert_to_tensor(words), kept, max_span, order)


def said(source, token):
    return WORDS[token] if token < V else source[token - V]


@pytest.mark.parametrize("max_length", [8, 6])
def test_every_step_allows_what_can_be_finished(max_length):
    sources = [text.split() for text in SOURCES] * 2
    sources = [source for source in sources if len(source) <= max_length]
    ids, kept, roles, links, mask = arrays_of(sources)
    rules = [order_oracle.may_follow(source, ["w", JOINER], max_length) for source in sources]
    constrain = constraints(V, S, max_length)
    # A copy that no position has is impossible.
    possible = np.zeros((len(sources), V + S), bool)
    possible[:, :V] = True
    for row, source in enumerate(sources):
        possible[row, [V + source.index(token) for token in source if token not in WORDS]] = True

    def step(ledger, ids, kept, roles, links, log_probs, index):
        protection = protection_of(kept, roles, links)
        standing = protection.standing(ledger, index, max_length)
        allowed = protection.forbid(constrain(log_probs, index), ledger, standing, ids, END)
        return allowed, standing.payable

    def pay(ledger, payable, tokens, ids, kept, roles, links):
        return protection_of(kept, roles, links).pay(ledger, payable, tokens, ids)

    random = np.random.default_rng(max_length)
    static = [ops.convert_to_tensor(array) for array in (ids, kept, roles, links)]
    ledger = protection_of(*static[1:]).first_ledger()
    prefixes = [()] * len(sources)
    ended = np.zeros(len(sources), bool)
    for index in range(max_length + 1):
        scores = random.normal(size=possible.shape) * 3
        log_probs = np.where(possible, scores - 10, -1e9).astype("float32")
        log_probs = ops.convert_to_tensor(log_probs)
        now = ops.convert_to_tensor(index, dtype="int32")
        found, payable = shared(("order step", max_length), step, ledger, *static, log_probs, now)
        found = numpy(found)
        actions = np.full(len(sources), END)
        for row, source in enumerate(sources):
            if ended[row]:
                continue
            allowed = {
                None if token == END else said(source, token)
                for token in np.flatnonzero(found[row] > -1e8)
                # A word of the source that the vocabulary lacks is one as good as `w`.
                if token == END or token < V or order_oracle.is_kept(said(source, token))
            }
            expected = rules[row](prefixes[row])
            assert allowed == expected, (source, prefixes[row])
            draws = np.flatnonzero(found[row] > -1e8)
            actions[row] = random.choice(draws)
            if actions[row] == END:
                ended[row] = True
            else:
                token = said(source, actions[row])
                prefixes[row] += (token if order_oracle.is_kept(token) or token == JOINER else "w",)
        tokens = ops.convert_to_tensor(actions.astype("int32"))
        ledger = shared(("order pay", max_length), pay, ledger, payable, tokens, *static)
    assert ended.all()


def search(kind, sources, logits, max_length, beam_size=1, ruled_out=None):
    """Decodes by a table of logits by last token; returns hypotheses in NumPy."""
    ids, kept, roles, links, mask = arrays_of(sources)
    possible = np.ones((len(sources), V + S), bool)
    for row, source in enumerate(sources):
        possible[row, V:] = False
        possible[row, [V + source.index(token) for token in source if token not in WORDS]] = True
    if ruled_out is not None:
        possible &= ~ruled_out

    def run(ids, kept, roles, links, mask, possible, logits):
        def step(tokens, carry, index):
            scores = ops.where(carry["possible"], ops.take(logits, tokens, axis=0), -1e9)
            log_probs = ops.log_softmax(scores, axis=-1)
            nothing = ops.zeros((ops.shape(tokens)[0], S)) - 1e9
            return StepOutput(log_probs, nothing, ops.zeros_like(nothing), carry)

        arguments = (step, {"possible": possible}, ids, mask, V + S, max_length)
        options = {"protection": protection_of(kept, roles, links)}
        if kind == "greedy":
            return greedy_search(*arguments, **options)
        if kind == "sampling":
            uniforms = draw_uniforms(3, len(sources), beam_size, max_length)
            return sample_search(*arguments, uniforms=uniforms, temperature=1.0, **options)
        return beam_search(*arguments, beam_size=beam_size, n_best=beam_size, **options)

    arrays = map(ops.convert_to_tensor, (ids, kept, roles, links, mask, possible, logits))
    return numpy(shared((kind, "order", len(sources), max_length, beam_size), run, *arrays))


def texts(found, sources):
    """The tokens of all hypotheses that were found: a list for each row."""
    return [
        [
            tuple(said(source, token) for token in tokens[:length])
            for tokens, length, score in zip(
                found.tokens[row], found.lengths[row], found.scores[row]
            )
            if score > -1e8
        ]
        for row, source in enumerate(sources)
    ]


@pytest.mark.parametrize(
    "kind, beam_size, max_length", [("greedy", 1, 8), ("beam", 4, 8), ("sampling", 3, 12)]
)
def test_all_searches_keep_the_order(kind, beam_size, max_length):
    sources = [text.split() for text in SOURCES]
    for seed in range(3):
        logits = np.random.default_rng(seed).normal(size=(V + S, V + S), scale=3)
        found = search(kind, sources, logits.astype("float32"), max_length, beam_size)
        for source, outputs in zip(sources, texts(found, sources)):
            assert outputs
            for output in outputs:
                assert order_oracle.is_legal(source, output), (source, output)


@pytest.mark.parametrize("words", [False, True])
def test_what_the_model_rules_out_is_kept_in_order(words):
    """The model only ends: even then no pair is empty."""
    sources = [text.split() for text in SOURCES]
    ruled_out = np.ones((len(sources), V + S), bool)
    ruled_out[:, END] = False
    if words:
        ruled_out[:, [4, 5]] = False
    logits = np.zeros((V + S, V + S), "float32")
    found = search("greedy", sources, logits, 10, ruled_out=ruled_out)
    for source, (output,) in zip(sources, texts(found, sources)):
        assert order_oracle.is_legal(source, output), (source, output)


@pytest.mark.parametrize("text", ["<b> %s </b> a", "%s <b> c </b>", "<i> <b> a", "%s a %d"])
def test_beam_equals_exhaustive_search(text):
    source, max_length = text.split(), 5
    rules = order_oracle.may_follow(source, ["w", JOINER], max_length)
    logits = np.random.default_rng(len(text)).normal(size=(V + S, V + S), scale=2)
    beam_size = 600
    found = search("beam", [source], logits.astype("float32"), max_length, beam_size)
    results = {}

    def extend(prefix, last, log_p):
        scores = logits[last].astype("float64").copy()
        for token in range(V, V + S):
            if token - V >= len(source) or source[token - V] in WORDS:
                scores[token] = -math.inf
            elif source.index(source[token - V]) != token - V:
                scores[token] = -math.inf
        p = np.exp(scores - scores.max())
        p /= p.sum()
        allowed = rules(tuple(t if order_oracle.is_kept(t) or t == JOINER else "w" for t in prefix))
        tokens = {}
        for token in range(3, V + S):
            if token == END or p[token] == 0:
                continue
            name = said(source, token)
            plain = not order_oracle.is_kept(name) and name != JOINER
            if ("w" if plain else name) in allowed:
                tokens[token] = p[token]
        if None not in allowed:
            paying = [t for t in tokens if order_oracle.is_kept(said(source, t))]
            total = sum(tokens[t] for t in paying)
            for t in paying:
                tokens[t] += p[END] * p[t] / total
        else:
            results[prefix] = (log_p + math.log(p[END])) / ((5 + len(prefix) + 1) / 6)
        if len(prefix) < max_length:
            for token, probability in tokens.items():
                extend((*prefix, said(source, token)), token, log_p + math.log(probability))

    extend((), 2, 0.0)
    outputs = texts(found, [source])[0]
    assert len(results) <= beam_size and len(set(outputs)) == len(outputs)
    assert set(outputs) == set(results)
    scores = found.scores[0, : len(outputs)]
    assert (np.diff(scores) <= 0).all()
    np.testing.assert_allclose(scores, [results[output] for output in outputs], rtol=1e-4)
