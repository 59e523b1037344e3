"""Hugging Face's Transformers and CTranslate2, in one environment:
the same untrained Transformer, which does not copy, decoded by either.
"""

import json
import pathlib

from benchmarks.peers import corpus, processes
from benchmarks.peers.job import Job

_loaded = {}
# Marian's order: the padding, with which its decoder begins, is the last id.
END, UNKNOWN, PADDING = "</s>", "<unk>", "<pad>"


def untrained(job):
    """Returns Hugging Face's network of the job's sizes:
    Marian's, whose padding is the last id, and the end 0.
    """
    import torch
    import transformers

    torch.manual_seed(1)
    config = transformers.MarianConfig(
        vocab_size=job.vocabulary,
        d_model=job.hidden,
        encoder_layers=job.layers,
        decoder_layers=job.layers,
        encoder_attention_heads=job.heads,
        decoder_attention_heads=job.heads,
        encoder_ffn_dim=job.feed_forward,
        decoder_ffn_dim=job.feed_forward,
        activation_function="relu",
        scale_embedding=True,
        eos_token_id=0,
        pad_token_id=job.vocabulary - 1,
        decoder_start_token_id=job.vocabulary - 1,
        forced_eos_token_id=None,
    )
    return transformers.MarianMTModel(config).eval()


def make(job, data, folder):
    """Writes an untrained model of the job's sizes for both programs."""
    import ctranslate2

    job, folder = Job.from_json(job), pathlib.Path(folder)
    model = untrained(job)
    model.save_pretrained(folder / "hugging_face")
    # Both sides in one vocabulary, as Marian's models have it; of the words, enough of each for the
    # size.
    sides = [
        corpus.frequent_words(lines, job.vocabulary) for lines in zip(*corpus.read(data, "train"))
    ]
    mixed = dict.fromkeys(word for pair in zip(*sides) for word in pair)
    words = [word for word in mixed if word not in (END, UNKNOWN, PADDING)]
    tokens = [END, UNKNOWN, *words[: job.vocabulary - 3], PADDING]
    (folder / "vocabulary.json").write_text(json.dumps(tokens), encoding="utf-8")
    loader = ctranslate2.converters.transformers.MarianMTLoader()
    spec = loader.get_model_spec(model)
    # Its vocabulary leaves the padding out, as its converter does: the decoder begins with zeros.
    loader.set_vocabulary(spec, tokens[:-1])
    spec.config.eos_token, spec.config.unk_token, spec.config.decoder_start_token = (
        END,
        UNKNOWN,
        END,
    )
    spec.validate()
    spec.optimize(quantization=None)
    (folder / "ctranslate2").mkdir(exist_ok=True)
    spec.save(str(folder / "ctranslate2"))
    return {"model": str(folder), "parameters": sum(value.numel() for value in model.parameters())}


def load(model, job, folder, forced, program):
    """Loads what `make` wrote into one of the programs, `ctranslate2` or `hugging_face`."""
    job, folder = Job.from_json(job), pathlib.Path(model)
    _loaded["job"] = job
    _loaded["tokens"] = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))
    if program == "ctranslate2":
        import ctranslate2

        options = {"inter_threads": 1, "intra_threads": job.threads, "compute_type": "float32"}
        _loaded["model"] = ctranslate2.Translator(
            str(folder / "ctranslate2"), device="cpu", **options
        )
        _loaded["translate"], version = _ctranslate2, f"CTranslate2 {ctranslate2.__version__}"
    else:
        import torch
        import transformers

        torch.set_num_threads(job.threads)
        _loaded["model"] = transformers.MarianMTModel.from_pretrained(
            folder / "hugging_face"
        ).eval()
        _loaded["translate"] = _hugging_face
        version = f"Transformers {transformers.__version__}, torch {torch.__version__}"
    return {"version": f"{version}; float32, no copying"}


def decode(texts, batch):
    """Translates texts in batches, in their order;
    returns seconds, outputs and their numbers of tokens.
    """
    outputs = []
    with processes.Timer() as timer:
        for start in range(0, len(texts), batch):
            outputs += _loaded["translate"]([text.split() for text in texts[start : start + batch]])
    return {
        **timer.facts,
        "outputs": [" ".join(output) for output in outputs],
        "lengths": [len(output) for output in outputs],
    }


def _ctranslate2(sentences):
    job = _loaded["job"]
    found = _loaded["model"].translate_batch(
        [[*words, END] for words in sentences],
        beam_size=job.beam,
        min_decoding_length=job.length,
        max_decoding_length=job.length,
    )
    return [one.hypotheses[0] for one in found]


def _hugging_face(sentences):
    import torch

    job, tokens = _loaded["job"], _loaded["tokens"]
    numbers = _loaded.setdefault("numbers", {token: number for number, token in enumerate(tokens)})
    padding = numbers[PADDING]
    longest = max(map(len, sentences)) + 1
    ids = [
        [*(numbers.get(word, numbers[UNKNOWN]) for word in words), numbers[END]]
        for words in sentences
    ]
    ids = torch.tensor([line + [padding] * (longest - len(line)) for line in ids])
    with torch.inference_mode():
        found = _loaded["model"].generate(
            input_ids=ids,
            attention_mask=(ids != padding).long(),
            num_beams=job.beam,
            min_new_tokens=job.length,
            max_new_tokens=job.length,
            # Else the padding is a word like any other.
            bad_words_ids=[[padding]],
        )
    return [[tokens[number] for number in line[1:].tolist()] for line in found]


if __name__ == "__main__":
    processes.serve({"make": make, "load": load, "decode": decode})
