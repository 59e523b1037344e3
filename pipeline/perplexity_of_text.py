"""Perplexity of an exported language model on a text file: what `verbatim evaluate` prints."""

import os

from pipeline import readers, text_streams
from pipeline.language_model_results import result


def measure(path, directory, recipe, say=print):
    """Measures a model on a text file.

    Args:
        path: the file; its lines are the sentences.
        directory: the SavedModel.
        recipe: the `Recipe` that it was trained with.
        say: function of one string, for people.

    Returns:
        A `pipeline.scoring.MetricResult`, with the number of words in its details.

    Raises:
        pipeline.readers.DataError: the file cannot be read, or is empty.
        pipeline.served_model.ModelError: the model cannot be used.
    """
    if not os.path.isfile(path):
        raise readers.DataError(f"{path} is not a file: give a text file, whose lines are sentences.")
    context, new = text_streams.passage_sizes(recipe)
    words = text_streams.read_words(os.path.basename(path), path, recipe.data)
    passages = list(text_streams.passages_of(words, context, new))
    if not passages:
        raise readers.DataError(f"{path} is empty: give a text file with words.")
    # The model is loaded after the text was found to be good: that takes seconds.
    from pipeline import perplexity
    from pipeline.served_language_model import ServedLanguageModel

    model = ServedLanguageModel(directory)
    scored = model.score(
        [passage.text for passage in passages], progress=lambda done: say(f"scored {done} of {len(passages)} passages")
    )
    total, count = 0.0, 0
    for passage, (tokens, log_probs) in zip(passages, scored, strict=True):
        added, number = perplexity.statistics(log_probs, len(tokens), passage.context)
        total, count = total + added, count + number
    return result(perplexity.value(total, count), count, f"passages of {new} words, each after {context} of context")
