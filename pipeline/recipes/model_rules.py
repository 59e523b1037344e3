"""The rules of the sections `model` and `segmentation`, for the task `seq2seq`."""

from pipeline.recipes.choices import ATTENTIVE_HEADS, POINTING_HEADS
from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe_keys import RecipeKeys


def check_model(recipe: RecipeKeys) -> None:
    """Checks the network, and the training keys that depend on it.

    Raises:
        RecipeError: keys do not fit together.
    """
    model, training = recipe.model, recipe.training
    if model.composition.endswith("bilstm") and model.embedding_size % 2:
        raise RecipeError(
            "The recipe key 'model.embedding_size' must be even: 'bilstm' composes words in two "
            "directions."
        )
    if model.body in ("transformer", "keras_hub"):
        for key, default in (
            ("attention", "none"),
            ("encoder", "cnn"),
            ("encoder", "segmenting"),
            ("selective_read", True),
            ("decoder", "bahdanau"),
        ):
            if getattr(model, key) == default:
                raise RecipeError(
                    f"The recipe key 'model.{key}' ({str(default).lower()}) needs 'model.body' = "
                    '"rnn": the transformer has none.'
                )
    if model.body == "keras_hub":
        _check_preset(recipe)
    elif model.body == "transformer":
        if model.hidden_size % model.attention_heads or model.hidden_size % 2:
            raise RecipeError(
                f"The recipe key 'model.hidden_size' ({model.hidden_size}) must be even and "
                f"divisible by 'model.attention_heads' ({model.attention_heads})."
            )
    elif model.encoder in ("rnn", "segmenting") and model.hidden_size % 2:
        raise RecipeError(
            "The recipe key 'model.hidden_size' must be even: the encoder has two directions."
        )
    elif model.encoder == "cnn" and model.kernel_size % 2 == 0:
        raise RecipeError(
            "The recipe key 'model.kernel_size' must be odd: it covers equally many words on both "
            "sides."
        )
    if model.initial_range and (model.body, model.encoder) != ("rnn", "rnn"):
        raise RecipeError(
            f"The recipe key 'model.initial_range' ({model.initial_range}) needs 'model.body' = "
            '"rnn" and \'model.encoder\' = "rnn": other layers have their own initial ranges. Set '
            "it to 0."
        )
    if model.preset and model.body != "keras_hub":
        raise RecipeError("The recipe key 'model.preset' needs 'model.body' = \"keras_hub\".")
    for key, head in recipe.heads.items():
        if model.attention == "none" and head in ATTENTIVE_HEADS:
            raise RecipeError(
                f"The recipe key '{key}' ({head}) needs a 'model.attention' other than \"none\": "
                "this head uses the attention."
            )
    if model.decoder == "bahdanau" and model.attention == "none":
        raise RecipeError(
            "The recipe key 'model.decoder' = \"bahdanau\" needs a 'model.attention' other than "
            '"none": it reads the source before each step.'
        )
    if model.selective_read and model.head != "joint_copy":
        raise RecipeError(
            "The recipe key 'model.selective_read' needs 'model.head' = \"joint_copy\"; got "
            f"{model.head!r}."
        )
    _check_dropouts(recipe)
    _check_guidance(recipe)
    if model.depth_scaled and model.body != "transformer":
        raise RecipeError(
            "The recipe key 'model.depth_scaled' needs 'model.body' = \"transformer\"."
        )
    if not model.norm_first and model.body != "transformer":
        raise RecipeError(
            "The recipe key 'model.norm_first' = false needs 'model.body' = \"transformer\"."
        )
    _check_vectors(recipe)
    _check_ties(recipe)
    if training.large_vocabulary_size:
        # No target may be missing: a batch has at most this many words, plus the special ids.
        least = max(training.batch_tokens // 2, training.bucket_lengths[-1]) + 4
        if training.large_vocabulary_size < least:
            raise RecipeError(
                "The recipe key 'training.large_vocabulary_size' "
                f"({training.large_vocabulary_size}) must be at least {least}, so that it covers "
                "all words of an update: half of 'training.batch_tokens', or the last of "
                "'training.bucket_lengths', and 4 more."
            )


def _check_preset(recipe: RecipeKeys) -> None:
    model, needs = recipe.model, "The recipe key 'model.body' = \"keras_hub\" needs"
    if not model.preset:
        raise RecipeError(f"{needs} the name or the folder of a pre-trained model: 'model.preset'.")
    if recipe.data.units != "preset":
        raise RecipeError(
            f"{needs} 'data.units' = \"preset\", the preset's own tokens; got "
            f"{recipe.data.units!r}."
        )
    if recipe.data.source_units:
        raise RecipeError(f"{needs} 'data.source_units' = \"\": the preset cuts both sides.")
    if model.composition != "lookup":
        raise RecipeError(
            f"{needs} 'model.composition' = \"lookup\", as the preset's words are; got "
            f"{model.composition!r}."
        )
    for key in ("source_vectors", "target_vectors"):
        if getattr(model, key):
            raise RecipeError(f"{needs} no 'model.{key}': the preset has vectors of words.")


def _check_dropouts(recipe: RecipeKeys) -> None:
    model = recipe.model
    for key, body in (
        ("attention_dropout", "transformer"),
        ("feed_forward_dropout", "transformer"),
        ("recurrent_dropout", "rnn"),
    ):
        if getattr(model, key) and model.body != body:
            raise RecipeError(
                f"The recipe key 'model.{key}' ({getattr(model, key)}) needs 'model.body' = "
                f'"{body}": body "{model.body}" has nothing that it could drop.'
            )


def _check_vectors(recipe: RecipeKeys) -> None:
    model = recipe.model
    if not model.source_vectors:
        return
    if model.tie_embeddings == "all":
        raise RecipeError(
            "The recipe key 'model.source_vectors' cannot be combined with 'model.tie_embeddings' "
            "= \"all\": name the file in 'model.target_vectors', which then serves both sides."
        )
    if not model.composition.startswith("lookup"):
        raise RecipeError(
            "The recipe key 'model.source_vectors' needs a 'model.composition' that looks words "
            f"up; got {model.composition!r}."
        )


def _check_guidance(recipe: RecipeKeys) -> None:
    if not recipe.training.guided_alignment_weight or recipe.model.body != "rnn":
        return
    key = "The recipe key 'training.guided_alignment_weight'"
    if recipe.model.segments:
        raise RecipeError(
            f"{key} needs another 'model.encoder' than \"segmenting\", which reads characters."
        )
    for name, head in recipe.heads.items():
        if head and recipe.model.attention == "none" and head not in POINTING_HEADS:
            raise RecipeError(
                f"{key} needs a 'model.attention' other than \"none\" to teach, with '{name}' = "
                f'"{head}".'
            )


def _check_ties(recipe: RecipeKeys) -> None:
    model, vocabulary = recipe.model, recipe.vocabulary
    if model.tie_embeddings == "none":
        return
    tied = f"The recipe key 'model.tie_embeddings' = \"{model.tie_embeddings}\""
    for key, head in recipe.heads.items():
        if head == "pointer_network":
            raise RecipeError(
                f"{tied} needs a softmax over words, which '{key}' = \"{head}\" lacks."
            )
    if model.tie_embeddings != "all":
        return
    if not vocabulary.joint:
        raise RecipeError(
            f"{tied} needs 'vocabulary.joint' = true: source and target share their words."
        )
    if recipe.data.units == "words" and vocabulary.source_size != vocabulary.target_size:
        raise RecipeError(
            f"{tied} needs 'vocabulary.source_size' ({vocabulary.source_size}) and "
            f"'vocabulary.target_size' ({vocabulary.target_size}) to be equal."
        )
    if not model.composition.startswith("lookup"):
        raise RecipeError(
            f"{tied} needs vectors of source words that are looked up: set 'model.composition' to "
            f'"lookup" or "lookup+{model.composition}".'
        )
    if model.pointers == "entities" and "pointer_softmax" in recipe.heads.values():
        raise RecipeError(
            f"{tied} cannot be combined with 'model.pointers' = \"entities\", which have words of "
            "the source alone."
        )


def check_segmentation(recipe: RecipeKeys) -> None:
    """Checks the encoder that finds words, `model.encoder = "segmenting"`.

    Raises:
        RecipeError: keys do not fit together.
    """
    if not recipe.model.segments:
        return
    if recipe.data.source_tokenization != "characters":
        raise RecipeError(
            "The recipe key 'model.encoder' = \"segmenting\" needs 'data.source_tokenization' = "
            '"characters": it finds words among them.'
        )
    for key, head in recipe.heads.items():
        if head not in ("", "softmax"):
            raise RecipeError(
                f"The recipe key '{key}' must be \"softmax\" for 'model.encoder' = \"segmenting\", "
                f"which would copy single characters; got {head!r}."
            )
    if recipe.model.attention == "none":
        raise RecipeError(
            "The recipe key 'model.encoder' = \"segmenting\" needs a 'model.attention' other than "
            '"none".'
        )
    if recipe.decoding.replace_unknown != "none":
        raise RecipeError(
            "The recipe key 'decoding.replace_unknown' must be \"none\" for 'model.encoder' = "
            '"segmenting": it would insert single characters.'
        )
    if recipe.decoding.temperature and recipe.segmentation.decoding_samples > 1:
        raise RecipeError(
            "The recipe key 'segmentation.decoding_samples' must be 1 with a "
            "'decoding.temperature' above 0: drawn outputs do not compete."
        )
    if recipe.segmentation.baseline == "samples" and recipe.segmentation.samples < 2:
        raise RecipeError(
            "The recipe key 'segmentation.samples' must be at least 2 for 'segmentation.baseline' "
            '= "samples": a sample is compared with the others.'
        )
