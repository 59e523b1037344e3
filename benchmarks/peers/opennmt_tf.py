"""OpenNMT-tf 2.32.0's side of decoding, in its own environment: the SavedModel that it exports.

It has no copying, so its model has none.
"""

import pathlib
from typing import Any

from benchmarks.peers import corpus, processes
from benchmarks.peers.job import Job

_loaded: dict[str, Any] = {}
# The program's own: <blank>, <s> and </s> are in the file, <unk> follows it.
SPECIALS = ("<blank>", "<s>", "</s>")


def make(job: str, data: str, folder: str) -> processes.Answer:
    """Exports an untrained model of the job's sizes and of forced length."""
    import opennmt
    import tensorflow as tf
    import tensorflow_addons as tfa

    sizes, directory = Job.from_json(job), pathlib.Path(folder)
    files = {}
    for side, lines in zip(("source", "target"), zip(*corpus.read(data, "train"))):
        words = [*SPECIALS, *corpus.frequent_words(lines, sizes.vocabulary - len(SPECIALS) - 1)]
        path = directory / f"{side}.txt"
        path.write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
        files[f"{side}_vocabulary"] = str(path)
    additive = sizes.attention == "additive"
    cell = tf.keras.layers.GRUCell
    model = opennmt.models.SequenceToSequence(
        source_inputter=opennmt.inputters.WordEmbedder(embedding_size=sizes.embedding),
        target_inputter=opennmt.inputters.WordEmbedder(embedding_size=sizes.embedding),
        encoder=opennmt.encoders.RNNEncoder(
            1, sizes.hidden // 2, bidirectional=True, cell_class=cell
        ),
        decoder=opennmt.decoders.AttentionalRNNDecoder(
            1,
            sizes.hidden,
            bridge_class=opennmt.layers.CopyBridge,
            attention_mechanism_class=tfa.seq2seq.BahdanauAttention
            if additive
            else tfa.seq2seq.LuongAttention,
            cell_class=cell,
        ),
    )
    lengths = {"minimum_decoding_length": sizes.length, "maximum_decoding_length": sizes.length}
    model.initialize(files, params={"beam_width": sizes.beam, "num_hypotheses": 1, **lengths})
    model.create_variables()
    model.export(str(directory / "model"))
    parameters = sum(int(tf.size(variable)) for variable in model.trainable_variables)
    return {"model": str(directory / "model"), "parameters": parameters}


def load(model: str, job: str, folder: str, forced: bool) -> processes.Answer:
    """Loads an exported model; its lengths are those that it was exported with."""
    import opennmt
    import tensorflow as tf
    import tensorflow_addons  # noqa: F401 (registers the operations that the graph uses)

    _loaded["model"] = tf.saved_model.load(model)
    return {"version": f"OpenNMT-tf {opennmt.__version__}, TensorFlow {tf.__version__}; no copying"}


def decode(texts: list[str], batch: int) -> processes.Answer:
    """Translates texts in batches, in their order.

    Returns:
        Seconds, outputs and their numbers of tokens.
    """
    import tensorflow as tf

    translate = _loaded["model"].signatures["serving_default"]
    outputs = []
    with processes.Timer() as timer:
        for start in range(0, len(texts), batch):
            words = [text.split() for text in texts[start : start + batch]]
            longest = max(map(len, words))
            padded = [line + [""] * (longest - len(line)) for line in words]
            answer = translate(
                tokens=tf.constant(padded),
                length=tf.constant([len(line) for line in words], tf.int32),
            )
            for tokens, length in zip(answer["tokens"].numpy(), answer["length"].numpy()):
                outputs.append(" ".join(token.decode("utf-8") for token in tokens[0][: length[0]]))
    return {
        **timer.facts,
        "outputs": outputs,
        "lengths": [len(output.split(" ")) for output in outputs],
    }


if __name__ == "__main__":
    processes.serve({"make": make, "load": load, "decode": decode})
