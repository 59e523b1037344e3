"""How much of a recipe's targets could be copied: what a copy mechanism has to gain on a corpus.

    python -m benchmarks.copyable geo_sql --data PATH

Reads and divides the data as the recipe says, and counts, on its test split and with its tokens and
vocabulary: the target tokens that stand in their source, and the same of those that the vocabulary
lacks.
"""

import argparse
import collections

from pipeline.features.vocabulary_files import choose_tokens
from pipeline.readers.formats import read_unit
from pipeline.readers.planning import plan_inputs
from pipeline.readers.records import Pair
from pipeline.readers.splits import SPLITS, divided_shares, split_of
from pipeline.recipes import loading
from pipeline.text import tokenization

_BATCH = 4096


def read_splits(recipe, data_path):
    """Returns a dict from split to its list of (source, target)."""
    data = recipe.data
    shares = divided_shares(data)
    splits = {split: [] for split in SPLITS}
    for unit in plan_inputs(data_path, data).units:
        for record in read_unit(unit, data):
            if isinstance(record, Pair):
                given = unit.split in SPLITS[1:]
                split = unit.split if given else split_of(record.source, data.split_salt, *shares)
                splits[split].append(record[:2])
    return splits


def tokens_of(texts, tokenizer):
    """Returns the tokens of each text as the Transform graph cuts them, joiners included."""
    import tensorflow as tf

    tokens = []
    for begin in range(0, len(texts), _BATCH):
        rows = tokenizer.tokenize(tf.constant(texts[begin : begin + _BATCH])).to_list()
        tokens += [[token.decode("utf-8") for token in row] for row in rows]
    return tokens


def count(recipe, data_path):
    """Returns the counts, a dict;
    `examples` are the unknown tokens that stand in no source, the most frequent first.
    """
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
    counts, lost = collections.Counter(), collections.Counter()
    for source, target in zip(*sides):
        for token in target:
            counts["tokens"] += 1
            counts["copyable"] += token in source
            if token not in known:
                counts["unknown"] += 1
                counts["unknown_copyable"] += token in source
                if token not in source:
                    lost[token] += 1
    return {
        **counts,
        "pairs": len(splits["test"]),
        "vocabulary": len(known),
        "examples": lost.most_common(8),
    }


def main():
    """Prints the shares of one recipe."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("recipe")
    parser.add_argument("--data", required=True)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    found = count(loading.load_recipe(options.recipe, options.set), options.data)
    unknown = found["unknown"] or 1
    print(
        f"{options.recipe}: {found['pairs']} test pairs, {found['tokens']} target tokens, "
        f"{found['copyable'] / found['tokens']:.1%} stand in the source; "
        f"{found['unknown']} ({found['unknown'] / found['tokens']:.1%}) not in the vocabulary of "
        f"{found['vocabulary']}, "
        f"{found['unknown_copyable'] / unknown:.1%} of these stand in the source"
    )
    print(
        "  unknown and in no source:",
        ", ".join(f"{token} ({number})" for token, number in found["examples"]),
    )


if __name__ == "__main__":
    main()
