"""Raw pairs to ids in the extended space: the graph that both training and serving run.

`preprocessing_fn` is what TextTransform runs; the SavedModel that is served contains the very graph
it traced, so training and serving cannot drift apart. The features are listed in
`docs/architecture.md`.
"""

import functools
import os

import tensorflow as tf

from keras_models.heads import copy_head
from pipeline.features import copy_lexicon, matching, pointer_labels, source_features, span_labels
from pipeline.lexicons import dictionaries, translation_lexicon
from pipeline.recipes.choices import LEXICON_HEADS
from pipeline.recipes.views import composes, imitates_scripts
from pipeline.text import characters, scripts, tokenization, units

SOURCE_VOCABULARY_FILE = "source_vocabulary.txt"
TARGET_VOCABULARY_FILE = "target_vocabulary.txt"
_TEXT = tokenization.Tokenizer()
FEATURES = (
    "source_tokens",
    "source_ids",
    "source_extended_ids",
    "source_feed_ids",
    "target_input_ids",
    "target_extended_ids",
)

# What a model reads in training; `label_features` adds what its head learns from.
ID_FEATURES = ("source_ids", "source_extended_ids", "target_input_ids", "target_extended_ids")
# The row of each source token in the lexicon of translations.
LEXICON_ROWS = "source_lexicon_rows"
# What stands behind a short text's features in a batch, where it is not 0: no position.
PADDING = {copy_head.POINTERS: -1, copy_head.SPAN_STARTS: -1}


def label_features(recipe):
    """Returns the names of the labels, beyond the target's ids, that the recipe's head learns from."""
    if recipe.model.head == "span_copy":
        return (copy_head.SPAN_STARTS, copy_head.SPAN_LENGTHS)
    if recipe.model.head == "pointer_softmax" and recipe.model.pointers != "unknown":
        return (copy_head.POINTERS,)
    return ()


def encoder_features(recipe):
    """Returns the names of the extra inputs of a recipe's encoder, and of what its head's lexicon
    is read by.
    """
    names = (*recipe.data.source_features, *recipe.data.surface_features)
    rows = (LEXICON_ROWS,) if recipe.model.head in LEXICON_HEADS else ()
    composed = (characters.FEATURE,) if composes(recipe) else ()
    heuristic = (scripts.FEATURE,) if imitates_scripts(recipe) else ()
    return (*map(source_features.feature_name, names), *rows, *composed, *heuristic)


def encoder_feature_sizes(transform_output, recipe):
    """Returns a dict from the name of each extra input of the encoder to its number of ids, id 0
    padding.
    """
    sizes = {
        source_features.feature_name(name): len(
            read_vocabulary(transform_output, source_features.tags_file(name))
        )
        for name in recipe.data.source_features
    }
    if "case" in recipe.data.surface_features:
        sizes[source_features.feature_name("case")] = len(source_features.CASES)
    return sizes


def vocabulary_table(path):
    """Returns a lookup table from token to line number, -1 where the file lacks the token."""
    initializer = tf.lookup.TextFileInitializer(
        path,
        tf.string,
        tf.lookup.TextFileIndex.WHOLE_LINE,
        tf.int64,
        tf.lookup.TextFileIndex.LINE_NUMBER,
    )
    return tf.lookup.StaticHashTable(initializer, default_value=-1)


def key_table(path):
    """Returns a lookup table from the first column of a TSV file to its line number, -1 where the
    file lacks the key.
    """
    initializer = tf.lookup.TextFileInitializer(
        path, tf.string, 0, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER, delimiter="\t"
    )
    return tf.lookup.StaticHashTable(initializer, default_value=-1)


def read_lexicon(transform_output):
    """Returns the lexicon of translations that a Transform graph's `source_lexicon_rows` point
    into.

    Returns:
        What `translation_lexicon.read_rows` does, by the target vocabulary.
    """
    vocabulary = read_vocabulary(transform_output, TARGET_VOCABULARY_FILE)
    path = os.path.join(
        transform_output.transform_savedmodel_dir, "assets", translation_lexicon.ROWS_FILE
    )
    # A word of the text that reads like a special token is none.
    ids = {
        token: number
        for number, token in enumerate(vocabulary)
        if token not in tokenization.SPECIAL_TOKENS[:-1]
    }
    return translation_lexicon.read_rows(path, ids, tokenization.UNK_ID)


def count_characters(transform_output):
    """Returns the number of character ids."""
    return len(read_vocabulary(transform_output, characters.CHARACTERS_FILE))


def read_vocabulary(transform_output, name):
    """Returns the tokens of a vocabulary, in the order of their ids, from a Transform graph's own
    copy of the file.

    Args:
        transform_output: a `tft.TFTransformOutput`.
        name: `SOURCE_VOCABULARY_FILE`, `TARGET_VOCABULARY_FILE` or the file of a column's tags.
    """
    with tf.io.gfile.GFile(
        os.path.join(transform_output.transform_savedmodel_dir, "assets", name)
    ) as file:
        return file.read().splitlines()


def protected_class_ids(tokens):
    """Returns the class id of each protected token (`[PLACEHOLDER]`, …) and `[UNK]`'s id for all
    others.
    """
    ids = tf.fill(tf.shape(tokens), tf.constant(tokenization.UNK_ID, tf.int64))
    for name, pattern in reversed(tokenization.PROTECTED_PATTERNS):
        class_id = tf.constant(tokenization.SPECIAL_TOKENS.index(name), tf.int64)
        ids = tf.where(tf.strings.regex_full_match(tokens, pattern), class_id, ids)
    return ids


def is_protected(tokens):
    """Tells which tokens are placeholders, tags, URLs or options; bool like `tokens`."""
    return tf.not_equal(protected_class_ids(tokens), tokenization.UNK_ID)


def make_features(
    source,
    target,
    source_table,
    target_table,
    tokenizer=_TEXT,
    settings=None,
    tables=None,
    tags=None,
    target_tokenizer=None,
):
    """Makes the id features of a batch of pairs.

    Args:
        source: string `[batch]`.
        target: string `[batch]`; empty when only the source is known, as in serving.
        source_table: lookup table of the source vocabulary, -1 for unknown tokens.
        target_table: the same for the target, of V entries.
        tokenizer: the recipe's `tokenization.Tokenizer`, or what else `units.tokenizer_of` gives
            for the source.
        settings: what `configs.transform_settings` gives: which features are made beside
            `FEATURES`.
        tables: what `load_tables` gives for these settings.
        tags: dict from each of `settings["source_features"]` to string `[batch]`.
        target_tokenizer: the target's; by default the source's.

    Returns:
        Dict of ragged tensors `[batch, (length)]`, one for each name in `FEATURES` and for those
        that the settings ask for.
    """
    settings, tables, tags = settings or {}, tables or {}, tags or {}
    source_tokens = tokenizer.tokenize(source)
    target_tokens = (target_tokenizer or tokenizer).tokenize(target)
    vocabulary_size = target_table.size()
    joiner_id = tf.constant(tokenization.SPECIAL_TOKENS.index(tokenization.JOINER), tf.int64)
    # What a copy writes: the token, but for phrases of a copy lexicon. The encoder reads the token.
    copy_tokens = source_tokens
    if settings.get("copy_lexicon"):
        table, longest = tables["copy_lexicon"]
        copy_tokens = copy_lexicon.phrase_surfaces(source_tokens, table.lookup, longest)

    def ids_and_feed(tokens, table):
        known = table.lookup(tokens.flat_values)
        # A token that reads `[PAD]` is a word of the text (which only white space parts): it is
        # unknown, hence copied.
        known = tf.where(known < joiner_id, tf.constant(-1, tf.int64), known)
        if table is source_table and "entities" in settings:
            known = tf.where(known < table.size() - settings["entities"], known, -1)
        feed = tf.where(known >= 0, known, protected_class_ids(tokens.flat_values))
        return tokens.with_flat_values(known), tokens.with_flat_values(feed)

    _, source_ids = ids_and_feed(source_tokens, source_table)
    source_known, source_feed = ids_and_feed(copy_tokens, target_table)
    target_known, target_feed = ids_and_feed(target_tokens, target_table)
    is_unknown = target_known.flat_values < 0

    # A surface form's first position. Comparing every pair of positions would take memory to the
    # square of the tokens.
    source_keys, target_keys = matching.token_keys(copy_tokens, target_tokens)

    def copy_ids(tokens, keys, absent):
        _, _, first = matching.first_occurrences(source_keys, keys)
        position = first - tf.gather(source_tokens.row_starts(), tokens.value_rowids())
        return tf.where(first >= 0, vocabulary_size + position, absent)

    source_extended = tf.where(
        source_known.flat_values >= 0,
        source_known.flat_values,
        copy_ids(source_tokens, source_keys, tf.constant(0, tf.int64)),
    )
    unknown = tf.constant(tokenization.UNK_ID, tf.int64)
    labels = tf.where(
        is_unknown, copy_ids(target_tokens, target_keys, unknown), target_known.flat_values
    )

    column = tf.ones([source_tokens.nrows(), 1], tf.int64)
    features = {
        "source_tokens": source_tokens,
        "source_ids": source_ids,
        "source_extended_ids": source_tokens.with_flat_values(source_extended),
        "source_feed_ids": source_feed,
        "target_input_ids": tf.concat([column * tokenization.START_ID, target_feed], axis=1),
        "target_extended_ids": tf.concat(
            [target_tokens.with_flat_values(labels), column * tokenization.END_ID], axis=1
        ),
    }
    for name in settings.get("source_features", ()):
        features[source_features.feature_name(name)] = source_features.tag_ids(
            tags[name], tables[name]
        )
    if "case" in settings.get("surface_features", ()):
        cases = source_features.case_ids(source_tokens.flat_values)
        features[source_features.feature_name("case")] = source_tokens.with_flat_values(cases)
    if "spans" in settings:
        starts, lengths = span_labels.span_labels(
            copy_tokens, target_tokens, is_unknown, **settings["spans"]
        )
        features.update({copy_head.SPAN_STARTS: starts, copy_head.SPAN_LENGTHS: lengths})
    if settings.get("pointers") == "dictionary":
        features[copy_head.POINTERS] = pointer_labels.dictionary_pointers(
            copy_tokens, target_tokens, is_unknown, tables["dictionary_sources"].lookup
        )
    if settings.get("pointers") == "entities":
        entity_tags = _tags_of_tokens(
            source_tokens, source_features.split_tags(tags[settings["entity_feature"]])
        )
        numbers, features[copy_head.POINTERS] = pointer_labels.entity_labels(
            copy_tokens, target_tokens, pointer_labels.is_entity(entity_tags)
        )
        ids = pointer_labels.entity_ids(
            source_ids.flat_values, numbers, source_table.size(), settings["entities"]
        )
        features["source_ids"] = source_ids.with_flat_values(ids)
    if settings.get("lexicon_rows"):
        line = tables["lexicon_rows"].lookup(source_tokens.flat_values)
        uncovered = tf.constant(translation_lexicon.UNCOVERED_ROW, tf.int64)
        row = tf.where(line < 0, uncovered, line + translation_lexicon.FIRST_ROW)
        features[LEXICON_ROWS] = source_tokens.with_flat_values(row)
    if "word_length" in settings:
        features[characters.FEATURE] = _characters(
            source_tokens, settings["word_length"], source_table, tables
        )
    if settings.get("scripts"):
        features[scripts.FEATURE] = scripts.script_ends(
            source_tokens, kana_alone=settings["scripts"] == "kana"
        )
    if settings.get("translate"):
        keep = is_protected(source_tokens.flat_values)
        lookup = tables["translations"].lookup
        copy_tokens = copy_lexicon.translated_surfaces(source_tokens, copy_tokens, lookup, keep)
    if settings.get("copy_lexicon") or settings.get("translate"):
        features["source_copy_tokens"] = copy_tokens
    return features


def _characters(tokens, word_length, source_table, tables):
    """The characters of each token, ragged `[batch, (length * word_length)]`."""
    classes = protected_class_ids(tokens.flat_values)
    unseen = (source_table.lookup(tokens.flat_values) < 0) & (classes != tokenization.UNK_ID)
    lines = tf.where(unseen, characters.class_lines(classes), 0)
    ids = characters.character_ids(tokens.flat_values, tables["characters"], lines, word_length)
    return tf.RaggedTensor.from_row_splits(tf.reshape(ids, [-1]), tokens.row_splits * word_length)


def _tags_of_tokens(tokens, tags):
    """Returns a tag for each of the flat tokens:
    `O` where a served text has fewer tags than tokens, which is refused later.
    """
    places = tf.range(tf.size(tokens.flat_values, out_type=tf.int64))
    rows = tokens.value_rowids()
    index = tf.gather(tags.row_starts(), rows) + places - tf.gather(tokens.row_starts(), rows)
    inside = index < tf.gather(tags.row_limits(), rows)
    found = tf.gather(tf.concat([tags.flat_values, ["O"]], axis=0), tf.where(inside, index, 0))
    return tf.where(inside, found, "O")


def load_tables(folder, settings, load=lambda path, make: make(path)):
    """Loads the tables that `make_features` needs beside the vocabularies.

    Args:
        folder: the Vocabulary artifact.
        settings: what `configs.transform_settings` gives; with `lexicon_uri`, the Lexicon artifact,
            where they ask for it.
        load: function of a path and a function of a path that makes a table; Transform must track
            what is made.

    Returns:
        Dict: the table of each column's tags by the column's name, `copy_lexicon` (table and
            longest phrase), `dictionary_sources`,
        `translations`, `lexicon_rows`, `characters`; those that the settings ask for.
    """

    def made(name, make):
        return load(os.path.join(folder, name), make)

    tables = {
        name: made(source_features.tags_file(name), vocabulary_table)
        for name in settings.get("source_features", ())
    }
    if settings.get("copy_lexicon"):
        longest = copy_lexicon.longest_phrase(os.path.join(folder, dictionaries.COPY_LEXICON_FILE))
        tables["copy_lexicon"] = (
            made(dictionaries.COPY_LEXICON_FILE, copy_lexicon.text_table),
            longest,
        )
    if settings.get("pointers") == "dictionary":
        tables["dictionary_sources"] = made(dictionaries.SOURCES_FILE, copy_lexicon.text_table)
    if "word_length" in settings:
        tables["characters"] = made(characters.CHARACTERS_FILE, vocabulary_table)
    if settings.get("translate") == "dictionary":
        tables["translations"] = made(dictionaries.TARGETS_FILE, copy_lexicon.text_table)
    if settings.get("translate") == "lexicon":
        path = os.path.join(settings["lexicon_uri"], translation_lexicon.BEST_FILE)
        tables["translations"] = load(path, copy_lexicon.text_table)
    if settings.get("lexicon_rows"):
        path = os.path.join(settings["lexicon_uri"], translation_lexicon.ROWS_FILE)
        tables["lexicon_rows"] = load(path, key_table)
    return tables


def preprocessing_fn(inputs, custom_config):
    """TFX Transform's entry:
    raw features `source`, `target` and columns of tags to the features of `make_features`.

    Args:
        inputs: dict of string tensors `[batch, 1]`.
        custom_config: `vocabulary_uri`, the folder that the Vocabulary component wrote,
            `lexicon_uri` and `subwords_uri`, those of Lexicon and Subwords, where the recipe has
            them, and what `configs.transform_settings` gives of the recipe.

    Returns:
        Dict of sparse tensors, which tf.Example stores as lists of any length.
    """
    import tensorflow_transform as tft

    def load(path, make):
        return tft.make_and_track_object(functools.partial(make, path), name=os.path.basename(path))

    uri = custom_config["vocabulary_uri"]
    vocabularies = [
        load(os.path.join(uri, name), vocabulary_table)
        for name in (SOURCE_VOCABULARY_FILE, TARGET_VOCABULARY_FILE)
    ]
    tokenizers = [
        tft.make_and_track_object(
            functools.partial(
                units.tokenizer_of, custom_config, custom_config.get("subwords_uri"), side
            ),
            name=f"{side} units",
        )
        if units.cuts(custom_config, side)
        else units.tokenizer_of(custom_config, None, side)
        for side in ("source", "target")
    ]
    columns = custom_config.get("source_features", ())
    source, target, *tags = (
        tf.reshape(inputs[name], [-1]) for name in ("source", "target", *columns)
    )
    features = make_features(
        source,
        target,
        *vocabularies,
        tokenizer=tokenizers[0],
        settings=custom_config,
        tables=load_tables(uri, custom_config, load),
        tags=dict(zip(columns, tags)),
        target_tokenizer=tokenizers[1],
    )
    return {name: ragged.to_sparse() for name, ragged in features.items()}
