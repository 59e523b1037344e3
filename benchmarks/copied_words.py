"""How many unseen words a model of subwords copies whole, by head, body and rule of the search.

    python -m benchmarks.copied_words --record benchmarks/results/copied_words.json

The corpus is made up: sentences of 12 words, which a dictionary translates, and of names, which
stay as they are. All names of the test sentences are unseen. A small network of each body and head
is trained for each seed, and decodes the same sentences with each setting of the search.
"""

import argparse
import io
import random
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.records import measuring
from benchmarks.records.record import Spread
from pipeline.metrics.copying import words_begun_by_copies
from pipeline.text import tokenization, units

Pair = tuple[list[str], list[str]]

BODIES = ("recurrent", "transformer")
HEADS = ("pointer_generator", "pointer_softmax", "pointer_sentinel", "joint_copy", "span_copy")
#: The rules of a search, by the name that the table has for them.
SEARCHES: dict[str, dict[str, Any]] = {
    "none": {},
    "loops": {"max_piece_repeats": 2},
    "whole words": {"copy_whole_words": True, "max_piece_repeats": 2},
}
PIECES = 110
WORDS = 12
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
_SPECIAL = ["[PAD]", "[UNK]", "[START]", "[END]"]


def made_word(generator: random.Random, low: int, high: int) -> str:
    """Returns a made-up word of so many syllables."""
    return "".join(generator.choices(_SYLLABLES, k=generator.randint(low, high)))


def made_corpus(train: int, test: int, seed: int = 1) -> tuple[list[Pair], list[Pair], set[str]]:
    """Returns pairs of word lists for training and test, and the names of the test."""
    generator = random.Random(seed)
    words: dict[str, str] = {}
    while len(words) < WORDS:
        words.setdefault(made_word(generator, 1, 2), made_word(generator, 1, 2))
    taken = {*words, *words.values()}

    def new_names(number: int) -> list[str]:
        names: list[str] = []
        while len(names) < number:
            name = made_word(generator, 2, 3)
            if name not in taken:
                taken.add(name)
                names.append(name)
        return names

    def pair(names: Sequence[str]) -> Pair:
        source = generator.choices(list(words), k=generator.randint(1, 3))
        source.insert(generator.randint(0, len(source)), generator.choice(names))
        # Translations stand in the order of the source; a name goes behind the word after it.
        target = [words.get(word, word) for word in source]
        for place in range(len(target) - 1):
            if source[place] not in words and source[place + 1] in words:
                target[place], target[place + 1] = target[place + 1], target[place]
        return source, target

    known, unseen = new_names(train // 4), new_names(test)
    return (
        [pair(known) for _ in range(train)],
        [pair(unseen) for _ in range(test)],
        set(unseen),
    )


def learn_pieces(pairs: Sequence[Pair]) -> Any:
    """Returns a joint sentencepiece model of the words."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([word for pair in pairs for side in pair for word in side]),
        model_writer=model,
        model_type="unigram",
        vocab_size=PIECES,
        add_dummy_prefix=False,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def cut(words: Sequence[str], processor: Any) -> list[str]:
    """Returns the units of words."""
    found: list[str] = []
    for word in words:
        first, *rest = processor.encode(word, out_type=str)
        found += [first, *(tokenization.JOINER + piece for piece in rest)]
    return found


def join(tokens: Sequence[str]) -> list[str]:
    """Returns the words of units."""
    return " ".join(tokens).replace(f" {tokenization.JOINER}", "").split()


class Task:
    """The corpus in ids.

    Args:
        train, test: how many pairs.
    """

    def __init__(self, train: int, test: int) -> None:
        from keras_models.token_ids import TokenIds

        pairs, self.test, self.names = made_corpus(train, test)
        processor = learn_pieces(pairs)
        self.train = [(cut(source, processor), cut(target, processor)) for source, target in pairs]
        self.sources = [cut(source, processor) for source, _ in self.test]
        pieces = [processor.id_to_piece(number) for number in range(3, len(processor))]
        vocabulary = _SPECIAL + pieces + [tokenization.JOINER + piece for piece in pieces]
        self.ids = TokenIds(vocabulary, vocabulary)
        self.pieces = np.array([units.continues(token) for token in vocabulary])

    def inputs(self) -> dict[str, np.ndarray[Any, Any]]:
        """Returns what decodes the test."""
        inputs = self.ids.sources(self.sources)
        continues = np.zeros(inputs["source_ids"].shape, bool)
        for row, tokens in enumerate(self.sources):
            continues[row, : len(tokens)] = [units.continues(token) for token in tokens]
        return {**inputs, "source_continues": continues}


def trained(task: Task, body: str, head: str, guided: float, seed: int, epochs: int) -> Any:
    """Returns a network after its training."""
    import keras

    from keras_models.losses import NegativeLogLikelihood
    from keras_models.models import RecurrentSeq2Seq, TransformerSeq2Seq

    keras.utils.set_random_seed(seed)
    size = task.ids.target_vocabulary_size
    model: Any
    options: dict[str, Any] = {"dropout": 0.1, "guided_alignment_weight": guided}
    if body == "recurrent":
        options |= {"embedding_size": 32, "hidden_size": 64, "attention": "bilinear"}
        options |= {"coverage": False, "coverage_loss_weight": 0.0}
        model = RecurrentSeq2Seq(size, size, head, **options)
    else:
        options |= {"embedding_size": 64, "hidden_size": 64, "attention_heads": 4}
        options |= {"feed_forward_size": 128, "encoder_layers": 2, "decoder_layers": 2}
        model = TransformerSeq2Seq(size, size, head, **options)
    spans = {"max_span": 5} if head == "span_copy" else {}
    features = task.ids.pairs(*map(list, zip(*task.train)), **spans)
    optimizer = keras.optimizers.Adam(3e-3 if body == "recurrent" else 2e-3, global_clipnorm=1.0)
    model.compile(optimizer, NegativeLogLikelihood(), jit_compile=False)
    targets = features["target_extended_ids"]
    model.fit(features, targets, batch_size=32, epochs=epochs, verbose=0)
    return model


def score(task: Task, model: Any, options: Mapping[str, Any], beam_size: int) -> dict[str, float]:
    """Returns the shares of one search of the test."""
    import tensorflow as tf

    from keras_models.decoding import decode

    if options.get("max_piece_repeats"):
        options = {**options, "piece_vocabulary": task.pieces}
    inputs = {name: tf.constant(value) for name, value in task.inputs().items()}

    @tf.function(autograph=False)
    def search(inputs: Mapping[str, tf.Tensor]) -> Any:
        return decode(
            model, inputs, max_length=24, beam_size=beam_size, length_alpha=1.0, **options
        )

    found = search(inputs)
    tokens, lengths, origins = (
        value.numpy()[:, 0] for value in (found.tokens, found.lengths, found.copied_from)
    )
    begun = whole = names = copied = exact = loops = 0
    for row, ((source, target), pieces) in enumerate(zip(task.test, task.sources)):
        length = int(lengths[row])
        output = task.ids.tokens(tokens[row, :length], pieces)
        counts = words_begun_by_copies(output, origins[row, :length].tolist(), pieces)
        begun, whole = begun + counts[0], whole + counts[1]
        words = join(output)
        due = task.names.intersection(source)
        names, copied = names + len(due), copied + len(due.intersection(words))
        exact += words == target
        loops += any(
            output[place] == output[place + 1] == output[place + 2]
            and units.continues(output[place])
            for place in range(length - 2)
        )
    return {
        "unseen": copied / names,
        "whole": whole / begun if begun else 0.0,
        "exact": exact / len(task.test),
        "loops": loops / len(task.test),
    }


def spread(values: Sequence[float]) -> Spread:
    """Returns the median of the seeds' figures, and the smallest and largest."""
    return Spread(statistics.median(values), min(values), max(values))


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains, measures, and prints a line for each row."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bodies", default=",".join(BODIES))
    parser.add_argument("--heads", default=",".join(HEADS))
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--test", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--beam-size", type=int, default=4)
    measuring.add_argument(parser)
    options = parser.parse_args(arguments)
    machine = measuring.machine()
    task = Task(options.pairs, options.test)
    seeds = [int(seed) for seed in options.seeds.split(",")]
    cells = [
        *((head, 0.0) for head in options.heads.split(",")),
        (options.heads.partition(",")[0], 0.5),
    ]
    found: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    for number, seed in enumerate(seeds, 1):
        for body in options.bodies.split(","):
            for head, guided in cells:
                label = f"{head}, guided" if guided else head
                model = trained(task, body, head, guided, seed, options.epochs)
                for name, search in SEARCHES.items():
                    figures = score(task, model, search, options.beam_size)
                    found.setdefault((body, label, name), []).append(figures)
                    print(seed, body, label, name, figures, flush=True)
        # After every seed, so that a run that is cut off leaves what it has.
        rows = [
            measuring.row(
                dict(zip(("body", "head", "rules"), labels)),
                {key: spread([figure[key] for figure in figures]) for key in figures[0]},
            )
            for labels, figures in found.items()
        ]
        measuring.write(options.record, measuring.table_of(rows, number, machine))


if __name__ == "__main__":
    main()
