"""How much of a recipe's targets could be copied: what a copy mechanism has to gain on a corpus.

    python -m benchmarks.copyable geo_sql --data PATH

Reads and divides the data as the recipe says. On its test split, with its tokens and vocabulary, it
counts the target tokens that occur in their source: among all, and among those that the vocabulary
lacks. It also counts the targets that a model could write without an error: with the vocabulary
alone, and with copies of single tokens.
"""

import argparse
import collections
import dataclasses
from collections.abc import Sequence

from pipeline.features.vocabulary_choice import choose_tokens
from pipeline.readers.formats import read_unit
from pipeline.readers.planning import plan_inputs
from pipeline.readers.records import Pair
from pipeline.readers.splits import SPLITS, divided_shares, split_of
from pipeline.recipes import loading
from pipeline.recipes.recipe import Recipe
from pipeline.text import tokenization

_BATCH = 4096


@dataclasses.dataclass(frozen=True)
class Copyable:
    """Counts of target tokens.

    Attributes:
        pairs: of the test split.
        vocabulary: how many tokens the vocabulary has.
        tokens: all target tokens.
        copyable: those that occur in their source.
        unknown: those that the vocabulary lacks.
        unknown_copyable: those of them that occur in their source.
        examples: unknown tokens that do not, with their counts, the most frequent first.
        known_targets: targets of which the vocabulary has every token.
        writable_targets: targets of which every token is in the vocabulary or in the source.
    """

    pairs: int
    vocabulary: int
    tokens: int
    copyable: int
    unknown: int
    unknown_copyable: int
    examples: list[tuple[str, int]]
    known_targets: int
    writable_targets: int


def read_splits(recipe: Recipe, data_path: str) -> dict[str, list[tuple[str, str]]]:
    """Returns the (source, target) pairs of each split."""
    data = recipe.data
    shares = divided_shares(data)
    splits: dict[str, list[tuple[str, str]]] = {split: [] for split in SPLITS}
    for unit in plan_inputs(data_path, data).units:
        for record in read_unit(unit, data):
            if isinstance(record, Pair):
                split = (
                    unit.split
                    if unit.split in SPLITS[1:]
                    else split_of(record.source, data.split_salt, *shares)
                )
                splits[split].append((record.source, record.target))
    return splits


def tokens_of(texts: Sequence[str], tokenizer: tokenization.Tokenizer) -> list[list[str]]:
    """Returns the tokens of each text as the Transform graph cuts them, joiners included."""
    import tensorflow as tf

    tokens: list[list[str]] = []
    for begin in range(0, len(texts), _BATCH):
        rows = tokenizer.tokenize(tf.constant(texts[begin : begin + _BATCH])).to_list()
        tokens += [[token.decode("utf-8") for token in row] for row in rows]
    return tokens


def count(recipe: Recipe, data_path: str) -> Copyable:
    """Counts the target tokens of a recipe's test split."""
    splits = read_splits(recipe, data_path)
    tokenizer = tokenization.Tokenizer.of(recipe.data)
    size = recipe.vocabulary
    seen = collections.Counter(
        token
        for row in tokens_of([target for _, target in splits["train"]], tokenizer)
        for token in row
    )
    known = set(choose_tokens(seen, size.target_size, size.min_count, size.protected_min_count))
    sides = [tokens_of([pair[side] for pair in splits["test"]], tokenizer) for side in (0, 1)]
    pairs = [(set(source), set(target)) for source, target in zip(*sides)]
    tokens = [(token, token in source) for source, target in zip(*sides) for token in target]
    unknown = [(token, is_copyable) for token, is_copyable in tokens if token not in known]
    lost = collections.Counter(token for token, is_copyable in unknown if not is_copyable)
    return Copyable(
        pairs=len(splits["test"]),
        vocabulary=len(known),
        tokens=len(tokens),
        copyable=sum(is_copyable for _, is_copyable in tokens),
        unknown=len(unknown),
        unknown_copyable=sum(is_copyable for _, is_copyable in unknown),
        examples=lost.most_common(8),
        known_targets=sum(target <= known for _, target in pairs),
        writable_targets=sum(target <= known | source for source, target in pairs),
    )


def main() -> None:
    """Prints the shares of one recipe."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("recipe")
    parser.add_argument("--data", required=True)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    counts = count(loading.load_recipe(options.recipe, options.set), options.data)
    print(
        f"{options.recipe}: {counts.pairs} test pairs, {counts.tokens} target tokens, "
        f"{counts.copyable / counts.tokens:.1%} occur in the source; "
        f"{counts.unknown} ({counts.unknown / counts.tokens:.1%}) not in the vocabulary of "
        f"{counts.vocabulary}, "
        f"{counts.unknown_copyable / (counts.unknown or 1):.1%} of these occur in the source"
    )
    known, writable = (
        f"{number / (counts.pairs or 1):.1%}"
        for number in (counts.known_targets, counts.writable_targets)
    )
    print(
        f"  targets of known tokens alone: {known}; of known tokens and tokens of the source: "
        f"{writable}"
    )
    print(
        "  unknown and not in the source:",
        ", ".join(f"{token} ({number})" for token, number in counts.examples),
    )


if __name__ == "__main__":
    main()
