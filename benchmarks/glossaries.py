"""What a glossary costs and gains: the same model and texts with one and without.

    python -m benchmarks.glossaries RUN... --lexicon RUN --record benchmarks/results/glossaries.json

RUN is the output folder of `verbatim run`. Of each sentence of its test split, one word is the
term: a word of the lexicon whose likeliest translation stands in the reference, as Dinu et al.
(2019) choose theirs, so that the reference is one that a glossary allows. Sentences without such a
word are left out. The lexicon is learned from training data alone.
"""

import argparse
import hashlib
import json
import pathlib
from collections.abc import Mapping, Sequence

from benchmarks.records import measuring
from benchmarks.records.collecting import Outputs
from benchmarks.records.record import MeasuredRow, Spread
from pipeline.lexicons import translation_lexicon
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring import score_pair
from pipeline.metrics.scoring_options import ScoringOptions
from serving import Model
from serving.glossary import Glossary, count_in

METRICS = ("bleu", "chrf")
# Shorter words are mostly articles and prepositions, which no glossary lists.
LETTERS = 4


def term_of(source: str, reference: str, translations: Mapping[str, str]) -> tuple[str, str] | None:
    """Returns the term of a sentence and its translation; None if it has none.

    Args:
        source: the sentence.
        reference: its translation.
        translations: from word to its likeliest translation.
    """
    found = []
    for word in set(source.lower().split()):
        translation = translations.get(word, "")
        if translation and len(word) >= LETTERS and word.isalpha() and translation.isalpha():
            once = Glossary({word: translation}).mark(source).count(translation) == 1
            if once and count_in(reference, translation) == 1:
                found.append((word, translation))
    # The text decides, so that every run of this program chooses the same.
    return min(found, key=lambda term: hashlib.sha256(term[0].encode()).digest(), default=None)


def measure(
    run: pathlib.Path, translations: Mapping[str, str], samples: int = 1000
) -> MeasuredRow | None:
    """Returns the row of a run's model; None if no sentence has a term.

    Args:
        run: the output folder of a run.
        translations: from word to its likeliest translation.
        samples: of the bootstrap.
    """
    system = json.loads((run / "metrics.json").read_text("utf-8"))["systems"][0]["name"]
    outputs = Outputs.read(run / "outputs" / f"{system}.jsonl")
    chosen = []
    for source, reference in zip(*outputs.pairs):
        if term := term_of(source, reference, translations):
            chosen.append((source, reference, term))
    if not chosen:
        return None
    sources, references, terms = map(list, zip(*chosen))
    (model,) = (path for path in (run / "models").iterdir() if path.is_dir())
    with Model(model) as asked:
        without = [answer.text for answer in asked.predict(sources)]
        given = [
            asked.predict(source, glossary=dict([term]))[0].text
            for source, term in zip(sources, terms)
        ]
    ours, theirs, compared = score_pair(
        METRICS,
        ScoredTexts(given, references, sources),
        ScoredTexts(without, references, sources),
        ScoringOptions(bootstrap_samples=samples),
    )
    figures: dict[str, Spread | None] = {"sentences": measuring.one(len(sources))}
    for name in METRICS:
        for label, results in (("without", theirs), ("with", ours)):
            figures[f"{name}, {label}"] = measuring.one(results[name].value)
        found = compared[name]
        parts = (found.difference, found.low, found.high)
        figures[f"{name}, difference"] = Spread(*(part or 0.0 for part in parts))
    for label, side in (("without", without), ("with", given)):
        held = [count_in(text, translation) >= 1 for text, (_, translation) in zip(side, terms)]
        figures[f"terms, {label}"] = measuring.one(sum(held) / len(held))
    return MeasuredRow({"run": run.name}, figures)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures each run's model and prints a line for it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="+", type=pathlib.Path)
    parser.add_argument("--lexicon", type=pathlib.Path, required=True, help="run that learned it")
    parser.add_argument("--record", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args(arguments)
    machine = measuring.machine()
    (folder,) = sorted((options.lexicon / "pipeline" / "Lexicon" / "lexicon").iterdir())[-1:]
    translations = {
        word: max(targets, key=targets.__getitem__)
        for word, targets in translation_lexicon.read(str(folder)).items()
    }
    rows = [row for run in options.runs if (row := measure(run, translations))]
    for row in rows:
        figures = {name: spread and spread.median for name, spread in row.figures.items()}
        print(row.labels["run"], figures)
    measuring.write(options.record, measuring.table_of(rows, 1, machine))


if __name__ == "__main__":
    main()
