"""Invented facts of a run, with everything that a run can have."""

import math

import numpy as np

from pipeline.metrics import scoring
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions

ATTACK = "<script>document.title='broken'</script><img src=x onerror=alert(1)>\"'&"


def _curves(start, end, gap, epochs=8):
    return [
        {
            "epoch": epoch,
            "seconds": 31.0 + epoch / 7,
            "loss": end + (start - end) * math.exp(-epoch / 2.2),
            "eval_loss": end
            + gap
            + (start - end) * math.exp(-epoch / 2.0)
            + 0.012 * max(0, epoch - 5) ** 2,
        }
        for epoch in range(1, epochs + 1)
    ]


def _output(text, tokens, copied_from, source_tokens):
    return {
        "text": text,
        "tokens": tokens + [""],
        "copied_from": copied_from + [-1],
        "copy_probability": [0.97 if origin >= 0 else 0.04 for origin in copied_from] + [0.0],
        "source_tokens": source_tokens,
    }


def example_facts():
    """Returns invented facts with everything that a run can have."""
    sources = ["Sign in to %s", "Delete the file %(name)s", "Open the menu"] * 20
    references = ["Se connecter à %s", "Supprimer le fichier %(name)s", "Ouvrir le menu"] * 20
    copying = [
        "Se connecter à %s",
        "Supprimer le fichier %(name)s",
        "Ouvrir menu",
    ] * 18 + references[:6]
    plain = ["Se connecter à %d", "Supprimer le fichier", "Ouvrir le menu"] * 15 + references[:15]
    names = [
        "bleu",
        "chrf",
        "placeholder_fidelity",
        "unseen_copies",
        "exact_match",
        "repetition_rate",
    ]
    keys = {"sources": sources, "training_words": {"Sign", "menu"}}
    options = ScoringOptions(bootstrap_samples=200)
    source_tokens = [
        "Hello",
        "￭,",
        "%(user_name)s",
        "￭!",
        "You",
        "have",
        "%d",
        "new",
        "messages",
        "￭.",
    ]
    tokens = [
        "Bonjour",
        "￭,",
        "%(user_name)s",
        "\u00a0!",
        "Vous",
        "avez",
        "%d",
        "nouveaux",
        "messages",
        "￭.",
    ]
    copied_from = [-1, -1, 2, -1, -1, -1, 6, -1, 8, -1]
    focus = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    attention = np.full((10, 10), 0.015)
    for row, column in enumerate(focus):
        attention[row, column] += 0.62
        attention[row, (column + 1) % 10] += 0.17
        attention[row, column - 1] += 0.06
    systems = []
    for name, outputs, curves, parameters in (
        ("pointer_generator", copying, _curves(6.1, 1.1, 0.22), 4_312_577),
        ("softmax", plain, _curves(6.4, 1.5, 0.41), 4_181_248),
    ):
        metrics = scoring.results_to_dict(
            scoring.score(names, ScoredTexts(outputs, references, **keys), options)
        )
        found = scoring.score(
            ["bleu_by_length", "word_f1_by_frequency"],
            ScoredTexts(
                outputs,
                references,
                training_words={"Se": 3, "Supprimer": 70, "fichier": 1, "le": 4000},
            ),
            ScoringOptions(bootstrap_samples=0),
        )
        systems.append(
            {
                "name": name,
                "metrics": metrics,
                "curves": curves,
                "parameters": parameters,
                "seconds": 263.4,
                "by_length": found["bleu_by_length"].details["by_length"],
                "by_frequency": found["word_f1_by_frequency"].details["by_frequency"],
            }
        )
    comparison = scoring.paired_bootstrap(
        names,
        ScoredTexts(copying, references, **keys),
        ScoredTexts(plain, references, **keys),
        options,
    )
    zanzibar = ["Import", "zanzibar.addon.theme", "into", "{{ site_title }}"]
    return {
        "title": "localization_en_fr: English to French, pointer_generator",
        "recipe": {
            "name": "localization_en_fr",
            "model": {"head": "pointer_generator", "hidden_size": 256},
        },
        "versions": {
            "verbatim-text": "0.1.0",
            "tfx": "1.16.0",
            "tensorflow": "2.16.2",
            "keras": "3.12.4",
        },
        "counts": {
            "read": 12873,
            "kept": 11904,
            "rejected": 969,
            "by_reason": {
                "duplicate pair": 640,
                "fuzzy entry": 301,
                "empty target": 25,
                "too long": 3,
            },
            "by_split": {"train": 10714, "eval": 596, "test": 594},
        },
        "systems": systems,
        "comparison": {name: result.p_value for name, result in comparison.items()},
        "samples": [
            {
                "source": "Open the menu",
                "reference": "Ouvrir le menu",
                "outputs": {
                    name: {"text": "Ouvrir le menu"} for name in ("pointer_generator", "softmax")
                },
            },
            {
                "source": "Import zanzibar.addon.theme into {{ site_title }}",
                "reference": "Importer zanzibar.addon.theme dans {{ site_title }}",
                "outputs": {
                    "pointer_generator": _output(
                        "Importer zanzibar.addon.theme dans {{ site_title }}",
                        ["Importer", "zanzibar.addon.theme", "dans", "{{ site_title }}"],
                        [-1, 1, -1, 3],
                        zanzibar,
                    ),
                    "softmax": _output(
                        "Importer dans [UNK]", ["Importer", "dans", "[UNK]"], [-1, -1, -1], zanzibar
                    ),
                },
            },
            {
                "source": ATTACK,
                "reference": "élève %s",
                "outputs": {
                    "pointer_generator": _output(
                        ATTACK, ATTACK.split(" "), [0] * len(ATTACK.split(" ")), [ATTACK]
                    ),
                    "softmax": {"text": "\u202eabc\ud800"},
                },
            },
        ],
        "slices": [
            {
                "slice": "domain = <b>law</b>",
                "n": 40,
                "metrics": {"bleu": 31.25},
                "last_blessed": {"bleu": 33.5},
            },
            {
                "slice": "domain = menu",
                "n": 9,
                "metrics": {"bleu": None},
                "last_blessed": {"bleu": None},
            },
        ],
        "wins": [
            {
                "source": "Import zanzibar.addon.theme",
                "reference": "Importer zanzibar.addon.theme",
                "gain": 61.24,
                "outputs": {
                    "pointer_generator": _output(
                        *(
                            "Importer zanzibar.addon.theme",
                            ["Importer", "zanzibar.addon.theme"],
                            [-1, 1],
                            zanzibar,
                        )
                    ),
                    "softmax": {"text": "Importer [UNK]"},
                },
            }
        ],
        "losses": [
            {
                "source": "Open the menu",
                "reference": "Ouvrir le menu",
                "gain": -20.5,
                "outputs": {
                    "pointer_generator": {"text": "Ouvrir menu"},
                    "softmax": {"text": "Ouvrir le menu"},
                },
            }
        ],
        "heat_maps": [
            {
                "source_tokens": source_tokens,
                "tokens": tokens,
                "attention": attention,
                "copy_probability": np.array(
                    [0.97 if origin >= 0 else 0.03 for origin in copied_from], np.float32
                ),
                "copied_from": np.array(copied_from),
            }
        ],
        "blessed": True,
        "blessing_reason": "BLEU reaches 20 and placeholder fidelity reaches 0.9 on the test "
        "split.",
        "stages": [
            {"name": "ParallelTextExampleGen", "seconds": 9.2},
            {"name": "Transform", "seconds": 31.8},
            {"name": "Trainer", "seconds": 263.4},
            {"name": "Evaluator", "seconds": 71.0},
        ],
    }
