"""OpenNMT-tf 2.32.0's side of decoding, in its own environment: the SavedModel that it exports.

It has no copying, so its model has none.
"""

import pathlib

from benchmarks.peers import corpus, processes
from benchmarks.peers.job import Job

_loaded = {}
# The program's own: <blank>, <s>, </s> stand in the file, <unk> behind it.
SPECIALS = ("<blank>", "<s>", "</s>")


def make(job, data, folder):
    """Exports an untrained model of the job's sizes, whose outputs have exactly `job.length`
    tokens.
    """
    import opennmt
    import tensorflow as tf
    import tensorflow_addons as tfa

    job, folder = Job.from_json(job), pathlib.Path(folder)
    files = {}
    for side, lines in zip(("source", "target"), zip(*corpus.read(data, "train"))):
        words = [*SPECIALS, *corpus.frequent_words(lines, job.vocabulary - len(SPECIALS) - 1)]
        path = folder / f"{side}.txt"
        path.write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
        files[f"{side}_vocabulary"] = str(path)
    additive = job.attention == "additive"
    cell = tf.keras.layers.GRUCell
    model = opennmt.models.SequenceToSequence(
        source_inputter=opennmt.inputters.WordEmbedder(embedding_size=job.embedding),
        target_inputter=opennmt.inputters.WordEmbedder(embedding_size=job.embedding),
        encoder=opennmt.encoders.RNNEncoder(
            1, job.hidden // 2, bidirectional=True, cell_class=cell
        ),
        decoder=opennmt.decoders.AttentionalRNNDecoder(
            1,
            job.hidden,
            bridge_class=opennmt.layers.CopyBridge,
            attention_mechanism_class=tfa.seq2seq.BahdanauAttention
            if additive
            else tfa.seq2seq.LuongAttention,
            cell_class=cell,
        ),
    )
    lengths = {"minimum_decoding_length": job.length, "maximum_decoding_length": job.length}
    model.initialize(files, params={"beam_width": job.beam, "num_hypotheses": 1, **lengths})
    model.create_variables()
    model.export(str(folder / "model"))
    parameters = sum(int(tf.size(variable)) for variable in model.trainable_variables)
    return {"model": str(folder / "model"), "parameters": parameters}


def load(model, job, folder, forced):
    """Loads an exported model; its lengths are those it was exported with."""
    import opennmt
    import tensorflow as tf
    import tensorflow_addons  # noqa: F401 (registers the operations that the graph uses)

    _loaded["model"] = tf.saved_model.load(model)
    return {"version": f"OpenNMT-tf {opennmt.__version__}, TensorFlow {tf.__version__}; no copying"}


def decode(texts, batch):
    """Translates texts in batches, in their order;
    returns seconds, outputs and their numbers of tokens.
    """
    import tensorflow as tf

    translate = _loaded["model"].signatures["serving_default"]
    outputs = []
    with processes.Timer() as timer:
        for start in range(0, len(texts), batch):
            words = [text.split() for text in texts[start : start + batch]]
            longest = max(map(len, words))
            padded = [line + [""] * (longest - len(line)) for line in words]
            found = translate(
                tokens=tf.constant(padded),
                length=tf.constant([len(line) for line in words], tf.int32),
            )
            for tokens, length in zip(found["tokens"].numpy(), found["length"].numpy()):
                outputs.append(" ".join(token.decode("utf-8") for token in tokens[0][: length[0]]))
    return {
        **timer.facts,
        "outputs": outputs,
        "lengths": [len(output.split(" ")) for output in outputs],
    }


if __name__ == "__main__":
    processes.serve({"make": make, "load": load, "decode": decode})
