"""The section `decoding`."""

import dataclasses

from pipeline.recipes.fields import choice, number


@dataclasses.dataclass(frozen=True)
class DecodingConfig:
    """How a served model searches."""

    # The number of hypotheses that the search keeps; 1 is greedy search.
    beam_size: int = number(4, low=1, high=64)
    # The number of answers that the signature `n_best` gives for each text.
    n_best: int = number(4, low=1, high=64)
    # The least number of tokens in an output.
    min_length: int = number(1, low=0)
    # An output has at most `max_length_factor` * source bucket + `max_length_offset` tokens. The
    # source bucket is the one of `length_buckets` that the source is padded to.
    max_length_factor: float = number(1.5, low=0.0)
    # The number of tokens added in the formula of `max_length_factor`.
    max_length_offset: int = number(10, low=1)
    # Scores are divided by the output's length raised to this power; 0 leaves scores as they are.
    length_penalty: float = number(1.0, low=0.0)
    # What an output's length counts: every token of a copied span (`tokens`), or the span as one
    # (`choices`).
    length_unit: str = choice("tokens", "choices", default="tokens")
    # The weight of the penalty on source tokens that got little attention (Wu et al. 2016).
    coverage_penalty: float = number(0.0, low=0.0)
    # 0 searches with a beam. Above 0, `n_best` outputs are drawn at random. The random numbers come
    # from `training.seed`, so the same request gets the same answer.
    temperature: float = number(0.0, low=0.0)
    # Draws among this many of the likeliest tokens; 0 draws among all.
    top_k: int = number(0, low=0)
    # Draws among the likeliest tokens whose probabilities add up to this mass; 1 draws among all.
    top_p: float = number(1.0, low=0.01, high=1.0)
    # No run of this many tokens occurs twice in an output; 0 allows all.
    no_repeat_ngram: int = number(0, low=0)
    # With `data.units = "subwords"`: an output that begins to copy a source word of several pieces
    # copies all of them. Leave it off where targets hold only the beginnings of source words.
    copy_whole_words: bool = False
    # With `data.units = "subwords"`: a piece of letters inside a word, or a pair of such pieces,
    # occurs at most this many times in a row; 0 allows all. Texts whose source repeats more often
    # are exempt.
    max_piece_repeats: int = number(0, low=0)
    # What replaces [UNK]. `none` chooses another word. `copy` takes the source token with the
    # highest attention. `dictionary` (data.dictionary) and `lexicon` (the likeliest translation)
    # write that token's translation, or the token itself if it has none.
    replace_unknown: str = choice("none", "copy", "dictionary", "lexicon", default="none")
    # The softmax runs over a shortlist of this many words for each text: the most frequent words,
    # and those that the lexicon proposes for the text's words. 0 runs the softmax over all words.
    shortlist_size: int = number(0, low=0)
    # An answer whose tokens have a smaller geometric mean probability is searched again among all
    # words, without the shortlist.
    shortlist_confidence: float = number(0.0, low=0.0, high=1.0)
    # An output has each placeholder, tag, URL and option as often as its source has it, if the head
    # can output it.
    keep_protected: bool = True
    # A glossary for all texts whose request has none, relative to the data folder: a .csv or .tsv
    # file with phrases and translations, or a .tbx file. The output contains each translation as
    # often as the source contains its phrase.
    glossary: str = ""
    # A text that has only numbers, punctuation, protected tokens and words unknown to the model is
    # returned unchanged. Set it to false if such texts are not to be copied, as in sorting or
    # parsing.
    pass_through: bool = True
    # What happens to a source with more tokens than the last of `length_buckets`. `refuse` answers
    # with an error. `split` translates its sentences one by one, and joins the answers with the
    # source's white space. `truncate` cuts off its last tokens. Answers give the number of
    # sentences, or of tokens that were cut off.
    long_texts: str = choice("refuse", "split", "truncate", default="refuse")
    # The numbers of texts that requests are padded to; each is compiled once.
    batch_buckets: tuple[int, ...] = (1, 8, 32)
    # The source lengths that requests are padded to; each is compiled once.
    length_buckets: tuple[int, ...] = (16, 64, 128)
