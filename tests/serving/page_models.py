"""Models that the web page must ask in different ways, or cannot ask at all."""

import json
import shutil

import tensorflow as tf

from serving.model_config import ALL_VERSIONS, ModelConfig

# A model's name is as much a matter of trust as its answers.
HOSTILE_NAME = "<img src=x onerror=broken=1>"
# Of `shouter`, version 2.
CARD = """# Model card: shouter, version 2

## Metrics <b>

- BLEU: `13a|<i>`

| metric | pointer\\_generator |
| --- | --- |
| BLEU | 30.65 \\[27, 34\\] |

```json
{"# a": "<script>"}
```
"""


class Continuer(tf.Module):
    """Continues a text with its first word, `and`, that word again, and a line end.

    The second time, the word is a copy of the continuation's own.
    """

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def go_on(self, text):
        read = tf.strings.split(text).to_tensor("")
        batch = tf.shape(read)[0]
        first = read[:, :1]
        tokens = tf.concat(
            [first, tf.fill([batch, 1], "and"), first, tf.fill([batch, 1], "[END]")], axis=1
        )
        count = tf.shape(read)[1]
        return {
            "text": tf.strings.join([first[:, 0], " and ", first[:, 0], "\n"]),
            "tokens": tokens,
            "copied_from": tf.tile([[0, -1, count, -1]], [batch, 1]),
            "copy_probability": tf.tile([[0.75, 0.25, 1.0, 0.0]], [batch, 1]),
            "log_probability": tf.fill([batch, 4], -0.5),
            "text_tokens": read,
        }


class Tagged(tf.Module):
    """Answers with the tags that came with a text and two joiners; it has no n-best list."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, name=name) for name in ("source", "entity")
        ]
    )
    def answer(self, source, entity):
        tokens = tf.strings.split(entity).to_tensor("")
        return {
            "text": tf.strings.join(["<", entity, ">"]),
            "score": tf.fill(tf.shape(source), -0.25),
            "tokens": tf.concat([tokens, tf.fill([tf.shape(tokens)[0], 2], "\uffed")], axis=1),
            "copied_from": tf.fill([tf.shape(tokens)[0], tf.shape(tokens)[1] + 2], -1),
            "copy_probability": tf.fill([tf.shape(tokens)[0], tf.shape(tokens)[1] + 2], 0.5),
            "source_tokens": tf.strings.split(source).to_tensor(""),
        }


class Bare(tf.Module):
    """Has nothing that the page could ask."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="source")])
    def count(self, source):
        return {"calls": tf.ones(tf.shape(source))}


def save_page_models(folder, saved_models):
    """Saves `shouter` in two versions, and models that are asked otherwise or not at all.

    The second version of `shouter` translates from English to French, and has a model card.

    Returns:
        The `ModelConfig` of each.
    """
    for version, name in ((1, "plain"), (2, "starred")):
        shutil.copytree(saved_models / name, folder / "shouter" / str(version))
    facts = folder / "shouter" / "2" / "assets.extra" / "verbatim.json"
    facts.parent.mkdir(exist_ok=True)
    languages = {"source_language": "en", "target_language": "fr"}
    facts.write_text(json.dumps({"recipe": {"data": languages}}))
    (folder / "shouter" / "model_card_2.md").write_text(CARD)
    continuer, tagged, bare = Continuer(), Tagged(), Bare()
    for name, module, signatures in (
        ("continuer", continuer, dict.fromkeys(("serving_default", "continue"), continuer.go_on)),
        ("tagged", tagged, {"serving_default": tagged.answer}),
        ("bare", bare, {"count": bare.count}),
    ):
        tf.saved_model.save(module, str(folder / name / "1"), signatures=signatures)
    names = {name: name for name in ("continuer", "tagged", "bare")} | {HOSTILE_NAME: "bare"}
    return [
        ModelConfig("shouter", str(folder / "shouter"), ALL_VERSIONS, {"stable": 1}),
        *(ModelConfig(name, str(folder / saved), ALL_VERSIONS) for name, saved in names.items()),
    ]
