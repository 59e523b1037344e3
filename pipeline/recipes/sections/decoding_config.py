"""The section `decoding`."""

import dataclasses

from pipeline.recipes.fields import choice, number


@dataclasses.dataclass(frozen=True)
class DecodingConfig:
    """How a served model searches."""

    # The hypotheses that the search keeps; 1 is greedy search.
    beam_size: int = number(4, low=1, high=64)
    # The answers that the signature `n_best` gives for each text.
    n_best: int = number(4, low=1, high=64)
    # The fewest tokens of an output.
    min_length: int = number(1, low=0)
    # The longest output has factor * source bucket + offset tokens.
    max_length_factor: float = number(1.5, low=0.0)
    # The tokens that are added to the factor's for the longest output.
    max_length_offset: int = number(10, low=1)
    # The exponent by which scores are divided by length; 0 divides by nothing.
    length_penalty: float = number(1.0, low=0.0)
    # An output's length counts every token of a copied span, or the span as one.
    length_unit: str = choice("tokens", "choices", default="tokens")
    # The weight of the penalty on source tokens that attention left out (Wu et al. 2016).
    coverage_penalty: float = number(0.0, low=0.0)
    # 0 searches with a beam. Above 0 n_best outputs are drawn, with random numbers from
    # training.seed, so that the same request gets the same answer.
    temperature: float = number(0.0, low=0.0)
    # Draws among this many of the likeliest tokens; 0 draws among all.
    top_k: int = number(0, low=0)
    # Draws among the likeliest tokens that have this mass.
    top_p: float = number(1.0, low=0.01, high=1.0)
    # No run of this many tokens occurs twice in an output; 0 allows all.
    no_repeat_ngram: int = number(0, low=0)
    # With `data.units = "subwords"`: an output that begins to copy a source word of several pieces
    # copies all of them. Leave it off where targets hold only the beginnings of source words.
    copy_whole_words: bool = False
    # With `data.units = "subwords"`: a piece of letters inside a word, or a pair of them, stands at
    # most this often in a row; 0 allows all. Texts whose source repeats more often are exempt.
    max_piece_repeats: int = number(0, low=0)
    # What replaces [UNK]. `none` chooses another word; `copy` takes the source token with the
    # highest attention; `dictionary` (data.dictionary) and `lexicon` (the likeliest translation)
    # put that token's translation, or else the token.
    replace_unknown: str = choice("none", "copy", "dictionary", "lexicon", default="none")
    # The softmax runs over this many words of each text, the most frequent and those that the
    # lexicon proposes for its words; 0 runs it over all. An answer whose tokens have a smaller
    # geometric mean probability than `shortlist_confidence` is searched again among all words.
    shortlist_size: int = number(0, low=0)
    # The smallest geometric mean probability of an answer from a shortlist.
    shortlist_confidence: float = number(0.0, low=0.0, high=1.0)
    # An output has each placeholder, tag, URL and option as often as its source, as far as the head
    # can output it.
    keep_protected: bool = True
    # A glossary for all texts whose request has none, relative to the data folder: a .csv or .tsv
    # file with phrases and translations, or .tbx. Each translation stands in the output as often as
    # its phrase in the source.
    glossary: str = ""
    # A text of numbers, punctuation, protected tokens and words that the model does not know comes
    # back as it is. Switch it off where such texts are not copied, as in sorting or parsing.
    pass_through: bool = True
    # A source with more tokens than the last of `length_buckets`: `refuse` answers with an error;
    # `split` translates its sentences one by one, and joins the answers with the white space of the
    # source; `truncate` cuts it off. Answers say how many sentences or tokens that were.
    long_texts: str = choice("refuse", "split", "truncate", default="refuse")
    # The numbers of texts that requests are padded to; each is compiled once.
    batch_buckets: tuple[int, ...] = (1, 8, 32)
    # The source lengths that requests are padded to; each is compiled once.
    length_buckets: tuple[int, ...] = (16, 64, 128)
