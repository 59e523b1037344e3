"""Probabilities p(e | f) of translations, learned, listed by hand, or both, and their files.

    manual:  p_m(e | f) = 1 / |K_f| for e in K_f, the translations that the dictionary lists for f
    hybrid:  p_h(e | f) = p_a(e | f) if the learned lexicon covers f, else p_m(e | f)

Source: Arthur 2018, "Learning Lexical Representations for Neural Machine Translation", section
3.2.3, equation 3.6.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

#: From source token to target token to probability.
Lexicon: TypeAlias = dict[str, dict[str, float]]

# Source token, target token, probability; tokens as JSON, because one may hold a line break.
LEXICON_FILE = "lexicon.tsv"
FACTS_FILE = "facts.json"
# For the graph's tables, whose keys are the text up to a tab: a word that holds a tab or a line
# break has no row.
# Source token, JSON object from target token to probability; row n is on line n - FIRST_ROW.
ROWS_FILE = "rows.tsv"
# Source token, its likeliest target token.
BEST_FILE = "best.tsv"
# The key of the only row of an empty lexicon, because TensorFlow cannot read an empty file.
_NO_TOKEN = " "
PADDING_ROW, UNCOVERED_ROW, FIRST_ROW = range(3)


def manual_lexicon(pairs: Iterable[tuple[str, str]]) -> Lexicon:
    """Returns the lexicon of a dictionary, with uniform probabilities.

    Args:
        pairs: each a (source word, target word); one that is listed twice counts once.
    """
    listed: dict[str, dict[str, None]] = {}
    for source, target in pairs:
        listed.setdefault(source, {})[target] = None
    return {source: dict.fromkeys(targets, 1 / len(targets)) for source, targets in listed.items()}


def fill_up(learned: Lexicon, manual: Lexicon) -> Lexicon:
    """Returns the hybrid lexicon: a word's learned translations, or the listed ones without any."""
    return {**manual, **{source: targets for source, targets in learned.items() if targets}}


def prune(lexicon: Lexicon, top_k: int, min_probability: float) -> Lexicon:
    """Keeps the likeliest translations of each word, and makes them sum to 1 again.

    Args:
        lexicon: the translations.
        top_k: the most translations that a word keeps; of equal ones the first by code point.
        min_probability: rarer translations are left out, except for a word's likeliest.

    Returns:
        A lexicon, each word's translations by falling probability.
    """
    pruned = {}
    for source, targets in lexicon.items():
        ranked = sorted(targets.items(), key=lambda item: (-item[1], item[0]))[:top_k]
        ranked = ranked[:1] + [item for item in ranked[1:] if item[1] >= min_probability]
        total = sum(probability for _, probability in ranked)
        if total > 0:
            pruned[source] = {target: probability / total for target, probability in ranked}
    return pruned


def coverage(lexicon: Lexicon, counts: Mapping[str, int]) -> tuple[float, float]:
    """Returns the shares of the training text that the lexicon covers.

    Args:
        lexicon: the translations.
        counts: from source word to its count; nothing to cover gives 0 and 0.

    Returns:
        (share of the distinct words, share of the running words).
    """
    covered = [word for word in counts if word in lexicon]
    running = sum(counts.values())
    return (
        len(covered) / len(counts) if counts else 0.0,
        sum(counts[word] for word in covered) / running if running else 0.0,
    )


def write(folder: str, lexicon: Lexicon, facts: Mapping[str, Any]) -> None:
    """Writes all the files above into a folder that exists, or an address."""
    from tfx.dsl.io import fileio

    def write_lines(name: str, lines: Sequence[str]) -> None:
        # In one call, even for an empty text: otherwise the file would not be created.
        with fileio.open(os.path.join(folder, name), "w") as file:
            file.write("".join(f"{line}\n" for line in lines))

    entries = []
    for source in sorted(lexicon):
        for target, probability in lexicon[source].items():
            words = (json.dumps(word, ensure_ascii=False) for word in (source, target))
            entries.append("\t".join((*words, f"{probability:.6g}")))
    write_lines(LEXICON_FILE, entries)
    rows, best = [], []
    for word in (word for word in sorted(lexicon) if not _breaks_line(word)):
        targets = {
            target: float(f"{probability:.6g}") for target, probability in lexicon[word].items()
        }
        rows.append(f"{word}\t{json.dumps(targets, ensure_ascii=False)}")
        likeliest = max(lexicon[word], key=lexicon[word].__getitem__)
        if not _breaks_line(likeliest):
            best.append(f"{word}\t{likeliest}")
    write_lines(ROWS_FILE, rows or [f"{_NO_TOKEN}\t{json.dumps({_NO_TOKEN: 1.0})}"])
    write_lines(BEST_FILE, best or [f"{_NO_TOKEN}\t{_NO_TOKEN}"])
    with fileio.open(os.path.join(folder, FACTS_FILE), "w") as file:
        file.write(json.dumps(facts, indent=1) + "\n")


def read(folder: str) -> Lexicon:
    """Returns the lexicon that `write` wrote."""
    from tfx.dsl.io import fileio

    lexicon: Lexicon = {}
    with fileio.open(os.path.join(folder, LEXICON_FILE), "r") as file:
        # Not splitlines: JSON leaves U+2028 and similar characters as they are.
        for line in file.read().split("\n"):
            if line:
                source, target, probability = line.split("\t")
                lexicon.setdefault(json.loads(source), {})[json.loads(target)] = float(probability)
    return lexicon


def _breaks_line(word: str) -> bool:
    return any(character in word for character in "\t\n\r")


def read_rows(
    path: str, target_ids: Mapping[str, int], unknown_id: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Reads `ROWS_FILE` as what a model's `set_lexicon` takes.

    Args:
        path: the file, or its copy in a Transform graph.
        target_ids: from target token to its id; tokens that it lacks are `[UNK]` (Arthur 2018,
            eq. 3.5).
        unknown_id: the id of `[UNK]`.

    Returns:
        int32 ids and float32 probabilities, both `[rows, K]`; the first two rows, padding's and
        that of words without translations, are `[UNK]` alone.
    """
    from tfx.dsl.io import fileio

    rows = [{unknown_id: 1.0}] * FIRST_ROW
    with fileio.open(path, "r") as file:
        for line in file.read().split("\n"):
            if not line:
                continue
            row: dict[int, float] = {}
            for target, probability in json.loads(line.partition("\t")[2]).items():
                target_id = target_ids.get(target, unknown_id)
                row[target_id] = row.get(target_id, 0.0) + probability
            total = sum(row.values())
            rows.append({target_id: probability / total for target_id, probability in row.items()})
    ids = np.full((len(rows), max(map(len, rows))), unknown_id, "int32")
    probabilities = np.zeros(ids.shape, "float32")
    for number, row in enumerate(rows):
        ids[number, : len(row)] = list(row)
        probabilities[number, : len(row)] = list(row.values())
    return ids, probabilities
