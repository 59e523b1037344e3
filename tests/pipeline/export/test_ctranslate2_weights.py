"""Our Transformer's weights in CTranslate2: the same log-probabilities, outputs and attention."""

import numpy as np
import pytest

ctranslate2 = pytest.importorskip(
    "ctranslate2", reason="ctranslate2, which these tests compare with, is not installed"
)

import keras

from keras_models import decoding
from keras_models.layers.transformer import sinusoidal_positions
from keras_models.models import TransformerSeq2Seq
from pipeline.export import ctranslate2_weights
from pipeline.export.ctranslate2_weights import Network, WeightsError

SIZE, LENGTH = 30, 6
WORDS = ["[PAD]", "[UNK]", "[START]", "[END]", *(f"w{number}" for number in range(4, SIZE))]
SOURCES = [[5, 9, 6, 9, 11], [7, 8], [12], [29, 4, 5, 6, 7, 20]]
NETWORKS = [
    {"norm_first": norm_first, "tie_embeddings": tied, "embedding_size": size}
    for norm_first in (True, False)
    for tied, size in (("none", 16), ("target", 16), ("all", 16), ("all", 12), ("none", 12))
] + [
    {"attention_heads": 1, "encoder_layers": 1, "decoder_layers": 3},
    {"norm_first": False, "decoder_layers": 1},
]


def make(end=0.0, **options):
    """Returns a network with weights as uneven as a training leaves them."""
    keras.utils.set_random_seed(3)
    sizes = {"hidden_size": 16, "feed_forward_size": 24, "encoder_layers": 2, "decoder_layers": 2}
    model = TransformerSeq2Seq(SIZE, SIZE, "softmax", **{**sizes, "embedding_size": 16, **options})
    draw = np.random.default_rng(1)
    for variable in model.trainable_variables:
        variable.assign(variable + draw.normal(0, 0.3, variable.shape))
    # What is never output is unlikely in a trained model.
    bias = np.array(model.head.vocabulary.bias)
    bias[:3] = -30
    bias[3] = end
    model.head.vocabulary.bias.assign(bias)
    return model


def weights_of(model):
    return {variable.path: np.array(variable) for variable in model.trainable_variables}


def network_of(options):
    return Network(
        attention_heads=options.get("attention_heads", 4),
        encoder_layers=options.get("encoder_layers", 2),
        decoder_layers=options.get("decoder_layers", 2),
        norm_first=options.get("norm_first", True),
        positions=40,
    )


def translator(folder, model, options, quantization=None):
    spec = ctranslate2_weights.fill(network_of(options), weights_of(model))
    spec.register_source_vocabulary(WORDS)
    spec.register_target_vocabulary(WORDS)
    spec.config.unk_token, spec.config.eos_token = "[UNK]", "[END]"
    spec.config.bos_token = spec.config.decoder_start_token = "[START]"
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))
    return ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=1)


def padded(rows):
    longest = max(map(len, rows))
    return np.array([row + [0] * (longest - len(row)) for row in rows])


def words(rows):
    return [[WORDS[number] for number in row] for row in rows]


def search(model, sources, **options):
    ids = padded(sources)
    inputs = dict.fromkeys(("source_ids", "source_extended_ids", "source_feed_ids"), ids)
    return decoding.decode(model, inputs, **options)


def test_positions_are_those_of_the_network():
    ours = np.array(sinusoidal_positions(np.arange(200), 12))
    np.testing.assert_allclose(ctranslate2_weights.sinusoidal_positions(200, 12), ours, atol=1e-5)


@pytest.mark.parametrize("options", NETWORKS, ids=range(len(NETWORKS)))
def test_targets_have_the_same_log_probabilities(tmp_path, options):
    model = make(**options)
    targets = [[7, 8, 20, 9], [4], [22, 5], []]
    log_probs = np.array(
        model(
            {
                "source_ids": padded(SOURCES),
                "source_extended_ids": padded(SOURCES),
                "target_input_ids": padded([[2, *target] for target in targets]),
                "target_extended_ids": padded([[*target, 3] for target in targets]),
            }
        )
    )
    scored = translator(tmp_path, model, options).score_batch(words(SOURCES), words(targets))
    for ours, theirs, target in zip(log_probs, scored, targets):
        assert len(theirs.log_probs) == len(target) + 1
        # Post-norm, a norm of a norm has epsilon twice.
        np.testing.assert_allclose(theirs.log_probs, ours[: len(target) + 1], atol=5e-5)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("sources", [SOURCES[:1], SOURCES], ids=["alone", "batch"])
def test_greedy_outputs_and_attention_are_the_same(tmp_path, norm_first, sources):
    options = {"norm_first": norm_first}
    model = make(end=2.0, **options)
    found = search(model, sources, max_length=12, return_attention=True, min_length=1)
    results = translator(tmp_path, model, options).translate_batch(
        words(sources),
        beam_size=1,
        max_decoding_length=13,
        min_decoding_length=1,
        disable_unk=True,
        return_attention=True,
        return_scores=True,
    )
    lengths = np.array(found.lengths)[:, 0]
    assert len(sources) == 1 or len(set(lengths)) > 1
    for row, (source, result) in enumerate(zip(sources, results)):
        tokens = np.array(found.tokens)[row, 0, : lengths[row]]
        assert result.hypotheses[0][: lengths[row]] == [WORDS[token] for token in tokens]
        attention = np.array(found.attention)[row, 0, : lengths[row], : len(source)]
        np.testing.assert_allclose(
            np.array(result.attention[0])[: lengths[row]], attention, atol=1e-5
        )


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("beam_size, n_best", [(2, 1), (3, 3), (5, 4)])
def test_n_best_are_the_same_where_all_outputs_end_together(
    tmp_path, norm_first, beam_size, n_best
):
    options = {"norm_first": norm_first}
    # Both searches forbid an earlier end; CTranslate2 shares its probability out.
    model = make(end=-30.0, **options)
    lengths = {"min_length": LENGTH, "max_length": LENGTH}
    found = search(model, SOURCES, beam_size=beam_size, n_best=beam_size, **lengths)
    made = translator(tmp_path, model, options)
    results = made.translate_batch(
        words(SOURCES),
        beam_size=beam_size,
        num_hypotheses=beam_size,
        min_decoding_length=LENGTH,
        max_decoding_length=LENGTH,
        disable_unk=True,
        return_scores=True,
    )
    for row, result in enumerate(results):
        # Ours count the end, which the longest output must have, too.
        sums = [
            sum(scored.log_probs)
            for scored in made.score_batch(
                words(SOURCES[row : row + 1]) * beam_size, result.hypotheses
            )
        ]
        ranked = sorted(zip(sums, result.hypotheses), reverse=True)[:n_best]
        ours = [[WORDS[token] for token in tokens] for tokens in np.array(found.tokens)[row]]
        assert [tokens for _, tokens in ranked] == ours[:n_best]
        expected = np.array(found.log_probs)[row, :n_best]
        np.testing.assert_allclose([total for total, _ in ranked], expected, atol=5e-4)


def test_tied_weights_take_their_room_once(tmp_path):
    sizes = {}
    for tied in ("none", "target", "all"):
        options = {"tie_embeddings": tied}
        (tmp_path / tied).mkdir()
        translator(tmp_path / tied, make(**options), options)
        sizes[tied] = (tmp_path / tied / "model.bin").stat().st_size
    table = SIZE * 16 * 4
    assert sizes["none"] - sizes["target"] > 0.8 * table
    assert sizes["target"] - sizes["all"] > 0.8 * table


def test_eight_bits_come_close(tmp_path):
    model = make()
    made = translator(tmp_path, model, {}, "int8")
    targets = [[7, 8, 20, 9]]
    inputs = {
        "source_ids": padded(SOURCES[:1]),
        "source_extended_ids": padded(SOURCES[:1]),
        "target_input_ids": padded([[2, *targets[0]]]),
        "target_extended_ids": padded([[*targets[0], 3]]),
    }
    (scored,) = made.score_batch(words(SOURCES[:1]), words(targets))
    difference = np.abs(np.array(scored.log_probs) - np.array(model(inputs))[0])
    assert 1e-4 < difference.max() < 0.5


def test_other_weights_are_refused():
    weights = weights_of(make())
    with pytest.raises(WeightsError, match="no weights named readout/kernel"):
        ctranslate2_weights.fill(
            network_of({}), {name: weights[name] for name in weights if "readout" not in name}
        )
    with pytest.raises(WeightsError, match="such as head/gate"):
        ctranslate2_weights.fill(network_of({}), {**weights, "head/gate": np.zeros(3)})
    with pytest.raises(WeightsError, match="no weights named encoder_2"):
        ctranslate2_weights.fill(network_of({"encoder_layers": 3}), weights)
