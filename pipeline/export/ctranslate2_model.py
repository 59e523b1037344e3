"""A converted model in this process: texts in, answers out, by CTranslate2 and without TensorFlow.

from pipeline.export.ctranslate2_model import CTranslate2Model

print(CTranslate2Model("converted").predict(["Delete the page?"])[0]["text"])
"""

import dataclasses
import json
import math
import os
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import regex

from pipeline.export.ctranslate2_facts import (
    MODEL_FILE,
    ConvertedModelError,
    Facts,
    bucket_of,
    longest_output,
)
from pipeline.export.refusals import check_texts
from pipeline.export.served_model import Answer
from pipeline.text import tokenization
from pipeline.text.placeholders.protected_syntax import compiled
from pipeline.text.text_cutter import TextCutter
from pipeline.text.text_joiner import TextJoiner
from serving import term_markup

# CTranslate2 divides by length ** penalty; so small a penalty divides by 1, and unlike 0 it does
# not let a search end when its best hypothesis has.
_NO_PENALTY = 1e-9
_NO_LETTER = regex.compile(r"[^\p{L}]*")
_BYTE = regex.compile(f"{tokenization.JOINER}?<0x[0-9A-F]{{2}}>{tokenization.JOINER}?")
# Ids below this are of special tokens, which no token of a text has.
_FIRST_WORD = tokenization.SPECIAL_TOKENS.index(tokenization.JOINER)


@dataclasses.dataclass(frozen=True)
class _Source:
    """A text that is read.

    Attributes:
        text: without white space at its ends.
        before, behind: that white space.
        tokens: its tokens.
        words: the entries of the source's vocabulary that stand for them.
        unknown: which of them the model does not know.
        passes: whether its answer is a copy.
    """

    text: str
    before: str
    behind: str
    tokens: list[str]
    words: list[str]
    unknown: list[bool]
    passes: bool


class _Output(NamedTuple):
    """One output of a search.

    Attributes:
        words: entries of the target's vocabulary.
        score: as our search scores it.
        attention: for each of `words`, the weights of the source's tokens; empty if not asked for.
    """

    words: list[str]
    score: float
    attention: list[list[float]]


class CTranslate2Model:
    """Loads a model that `verbatim convert` wrote, and answers as the model it was made of.

    The network computes the same numbers. CTranslate2's search differs from ours where hypotheses
    of a beam end at different lengths; see the guide "Answer with CTranslate2". With a `beam_size`
    of 1 it is the same.

    Args:
        folder: the converted model.
        exact_scores: whether outputs are scored once more by the whole vocabulary. Otherwise the
            scores are CTranslate2's, which share out among other words what words that are never
            output would have, such as `[UNK]`.
        **options: of `ctranslate2.Translator`, such as `intra_threads=4` or `device="cuda"`.

    Attributes:
        facts: the facts of the folder.
        translator: the `ctranslate2.Translator`.

    Raises:
        ConvertedModelError: the folder holds no converted model.
    """

    def __init__(
        self, folder: str | os.PathLike[str], exact_scores: bool = False, **options: Any
    ) -> None:
        self.facts = Facts.read(folder)
        try:
            import ctranslate2
        except ModuleNotFoundError:
            raise ConvertedModelError(
                "The package 'ctranslate2' is not installed; a converted model needs it: pip "
                "install 'path/to/verbatim[ctranslate2]', a checkout of Verbatim."
            ) from None
        self.exact_scores = exact_scores
        path = pathlib.Path(folder)
        try:
            self.translator = ctranslate2.Translator(os.fspath(folder), **options)
        except (RuntimeError, ValueError) as error:
            raise ConvertedModelError(
                f"The model {path} cannot be loaded ({str(error).rstrip('.')}): convert it again."
            ) from None
        data = self.facts.data
        source = tokenization.Tokenizer.of(data, "source")
        model = path / MODEL_FILE
        self._cutter = TextCutter(source, model.read_bytes() if model.is_file() else None)
        has_units = data.units != "words"
        self._joiner = TextJoiner(tokenization.Tokenizer.of(data), has_units)
        self._has_units = has_units
        self._syntax = source.syntax
        self._known = set(_read_vocabulary(path, "source")[_FIRST_WORD:])

    def predict(self, texts: Sequence[str], attention: bool = False) -> list[Answer]:
        """Returns the best answer of each text.

        Args:
            texts: list of strings.
            attention: whether answers have `attention`, for each token the weights of the source's.

        Raises:
            ModelError: `texts` is no list of strings.
            ConvertedModelError: a text is empty, too long, or has terms of a glossary.
        """
        return [answers[0] for answers in self.n_best(texts, 1, attention)]

    def n_best(
        self, texts: Sequence[str], number: int | None = None, attention: bool = False
    ) -> list[list[Answer]]:
        """Returns the best answers of each text, as many as `decoding.n_best` says.

        Args:
            texts, attention: see `predict`.
            number: how many instead, at most the beam's size.

        Raises:
            ModelError, ConvertedModelError: see `predict`.
        """
        check_texts("source text", texts)
        sources = [self._read(place, text) for place, text in enumerate(texts)]
        number = min(number or self.facts.decoding.n_best, self.facts.decoding.beam_size)
        places: dict[int, list[int]] = {}
        for place, source in enumerate(sources):
            if not source.passes:
                bucket = bucket_of(len(source.words), self.facts.decoding)
                places.setdefault(bucket, []).append(place)
        outputs: dict[int, list[_Output]] = {}
        for bucket, members in sorted(places.items()):
            words = [sources[place].words for place in members]
            outputs.update(zip(members, self._search(words, bucket, attention)))
        return [
            [_copy(source, attention)] * number
            if source.passes
            else [self._answer(source, output, attention) for output in outputs[place][:number]]
            for place, source in enumerate(sources)
        ]

    def _read(self, place: int, text: str) -> _Source:
        """Cuts a text and looks its tokens up.

        Raises:
            ConvertedModelError: the model does not take it.
        """
        bare = text.strip()
        start = text.find(bare) if bare else len(text)
        tokens = self._cutter.tokens(bare)
        longest = self.facts.decoding.length_buckets[-1]
        if not tokens:
            raise ConvertedModelError(f"The source text {place} is empty; give at least one word.")
        if len(tokens) > longest:
            raise ConvertedModelError(
                f"The source text {place} has {len(tokens)} tokens; this model takes at most "
                f"{longest}."
            )
        if any("\0" in token for token in tokens):
            raise ConvertedModelError(
                "This model takes no glossary: its head cannot copy; leave the terms of the source "
                f"text {place} unmarked."
            )
        words = [self._word(token) for token in tokens]
        unknown = [
            word == tokenization.UNK or (self._has_units and _BYTE.fullmatch(token) is not None)
            for word, token in zip(words, tokens)
        ]
        passes = self.facts.decoding.pass_through and all(
            is_unknown
            or self._syntax.is_protected(token)
            or _NO_LETTER.fullmatch(token) is not None
            for token, is_unknown in zip(tokens, unknown)
        )
        return _Source(
            bare, text[:start], text[start + len(bare) :], tokens, words, unknown, passes
        )

    def _word(self, token: str) -> str:
        """Returns the entry of the source's vocabulary that stands for a token."""
        if token in self._known:
            return token
        return self._syntax.class_of(token) or tokenization.UNK

    def _search(
        self, sources: list[list[str]], bucket: int, attention: bool
    ) -> list[list[_Output]]:
        """Returns the outputs of texts of one bucket, the best first."""
        decoding = self.facts.decoding
        options = dict(self.facts.translate_batch)
        reads_attention = (
            attention or decoding.replace_unknown == "copy" or bool(decoding.coverage_penalty)
        )
        options.update(
            num_hypotheses=decoding.beam_size,
            length_penalty=_NO_PENALTY,
            coverage_penalty=0,
            max_decoding_length=longest_output(bucket, decoding),
            # Our answers say what was replaced, and by what.
            replace_unknowns=False,
            return_attention=reads_attention,
            max_batch_size=decoding.batch_buckets[-1],
        )
        results = self.translator.translate_batch(sources, **options)
        log_probs = [result.scores for result in results]
        if self.exact_scores:
            log_probs = self._scored(sources, [result.hypotheses for result in results])
        first = self._first_attention(sources) if reads_attention else []
        outputs = []
        for place, (result, sums) in enumerate(zip(results, log_probs)):
            matrices: list[list[list[float]]] = [[] for _ in result.hypotheses]
            if reads_attention:
                matrices = [[first[place], *matrix[1:]] for matrix in result.attention]
            of_text = [
                _Output(words, self._score(words, log_prob, matrix), matrix)
                for words, log_prob, matrix in zip(result.hypotheses, sums, matrices)
            ]
            outputs.append(sorted(of_text, key=lambda output: -output.score))
        return outputs

    def _first_attention(self, sources: list[list[str]]) -> list[list[float]]:
        """Returns the weights of the source's tokens at each text's first step.

        They are the same for all outputs. With a beam CTranslate2 (4.8.5) returns those of another
        text of the batch instead.
        """
        results = self.translator.translate_batch(
            sources,
            beam_size=1,
            min_decoding_length=1,
            max_decoding_length=1,
            max_input_length=0,
            max_batch_size=self.facts.decoding.batch_buckets[-1],
            return_attention=True,
        )
        return [result.attention[0][0] for result in results]

    def _scored(
        self, sources: list[list[str]], hypotheses: list[list[list[str]]]
    ) -> list[list[float]]:
        """Returns the log-probabilities of hypotheses, the end's included."""
        pairs = [
            (source, words) for source, several in zip(sources, hypotheses) for words in several
        ]
        scored = iter(
            self.translator.score_batch(
                *map(list, zip(*pairs)), max_input_length=0, max_batch_size=32
            )
        )
        return [[sum(next(scored).log_probs) for _ in several] for several in hypotheses]

    def _score(self, words: Sequence[str], log_prob: float, matrix: list[list[float]]) -> float:
        """Returns `keras_models.decoding.beam_search`'s score of a hypothesis."""
        decoding = self.facts.decoding
        length = len(words) + 1
        score = log_prob / ((5.0 + length) / 6.0) ** decoding.length_penalty
        if decoding.coverage_penalty and matrix:
            covered = [min(max(sum(column), 1e-6), 1.0) for column in zip(*matrix)]
            score += decoding.coverage_penalty * sum(map(math.log, covered))
        return score

    def _answer(self, source: _Source, output: _Output, attention: bool) -> Answer:
        words = output.words
        tokens = list(words)
        copied_from, probability = [-1] * len(words), [0.0] * len(words)
        if self.facts.decoding.replace_unknown == "copy":
            for place, word in enumerate(words):
                if word == tokenization.UNK:
                    weights = output.attention[place]
                    best = max(range(len(weights)), key=weights.__getitem__)
                    tokens[place] = source.tokens[best]
                    copied_from[place], probability[place] = best, round(weights[best], 4)
        written = set(tokens)
        answer: Answer = {
            "text": source.before + self._joiner.text(tokens) + source.behind,
            "score": output.score,
            "tokens": tokens,
            "copied_from": copied_from,
            "copy_probability": probability,
            "source_tokens": source.tokens,
            "unknown_not_copied": sum(
                is_unknown and token not in written
                for token, is_unknown in zip(source.tokens, source.unknown)
            ),
        }
        if attention:
            answer["attention"] = [[round(weight, 4) for weight in row] for row in output.attention]
        return answer


def _copy(source: _Source, attention: bool) -> Answer:
    """Returns the answer of a text that passes through."""
    number = len(source.tokens)
    text = compiled(term_markup.ESCAPED).sub(r"\1", source.text)
    answer: Answer = {
        "text": source.before + text + source.behind,
        "score": 0.0,
        "tokens": source.tokens,
        "copied_from": list(range(number)),
        "copy_probability": [1.0] * number,
        "source_tokens": source.tokens,
        "unknown_not_copied": 0,
    }
    if attention:
        answer["attention"] = [
            [float(row == column) for column in range(number)] for row in range(number)
        ]
    return answer


def _read_vocabulary(folder: pathlib.Path, side: str) -> list[str]:
    shared = folder / "shared_vocabulary.json"
    path = shared if shared.is_file() else folder / f"{side}_vocabulary.json"
    words: list[str] = json.loads(path.read_text(encoding="utf-8"))
    return words
