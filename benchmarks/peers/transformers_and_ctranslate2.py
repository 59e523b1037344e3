"""Hugging Face's Transformers and CTranslate2, in one environment.

Both decode with the same untrained Transformer, which does not copy. Hugging Face's trains, too.
"""

import json
import pathlib
import random
from collections.abc import Sequence
from typing import Any

from benchmarks.peers import corpus, processes
from benchmarks.peers.job import Job

_loaded: dict[str, Any] = {}
# Marian's order: the padding, with which its decoder begins, is the last id.
END, UNKNOWN, PADDING = "</s>", "<unk>", "<pad>"


def untrained(job: Job, two_vocabularies: bool = False, **settings: float) -> Any:
    """Returns Hugging Face's `MarianMTModel` of the job's sizes.

    Its padding is the last id, and its end is id 0.

    Args:
        job: the sizes.
        two_vocabularies: whether sources, targets and outputs have weights of their own.
        settings: more of its configuration.
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
        share_encoder_decoder_embeddings=not two_vocabularies,
        tie_word_embeddings=not two_vocabularies,
        **settings,
    )
    return transformers.MarianMTModel(config).eval()


def make(job: str, data: str, folder: str) -> processes.Answer:
    """Writes an untrained model of the job's sizes for both programs."""
    import ctranslate2

    sizes, directory = Job.from_json(job), pathlib.Path(folder)
    model = untrained(sizes)
    model.save_pretrained(directory / "hugging_face")
    # One vocabulary for both sides, as in Marian's models, with as many words of each.
    sides = [
        corpus.frequent_words(lines, sizes.vocabulary) for lines in zip(*corpus.read(data, "train"))
    ]
    mixed = dict.fromkeys(word for pair in zip(*sides) for word in pair)
    words = [word for word in mixed if word not in (END, UNKNOWN, PADDING)]
    tokens = [END, UNKNOWN, *words[: sizes.vocabulary - 3], PADDING]
    (directory / "vocabulary.json").write_text(json.dumps(tokens), encoding="utf-8")
    loader = ctranslate2.converters.transformers.MarianMTLoader()
    spec = loader.get_model_spec(model)
    # Without the padding, as its converter does it: the decoder begins with zeros.
    loader.set_vocabulary(spec, tokens[:-1])
    spec.config.eos_token, spec.config.unk_token, spec.config.decoder_start_token = (
        END,
        UNKNOWN,
        END,
    )
    spec.validate()
    spec.optimize(quantization=None)
    (directory / "ctranslate2").mkdir(exist_ok=True)
    spec.save(str(directory / "ctranslate2"))
    return {"model": folder, "parameters": sum(value.numel() for value in model.parameters())}


def load(model: str, job: str, folder: str, forced: bool, program: str) -> processes.Answer:
    """Loads a made model into one of the programs, `ctranslate2` or `hugging_face`."""
    sizes, directory = Job.from_json(job), pathlib.Path(model)
    _loaded["job"] = sizes
    _loaded["tokens"] = json.loads((directory / "vocabulary.json").read_text(encoding="utf-8"))
    if program == "ctranslate2":
        import ctranslate2

        options = {"inter_threads": 1, "intra_threads": sizes.threads, "compute_type": "float32"}
        _loaded["model"] = ctranslate2.Translator(
            str(directory / "ctranslate2"), device="cpu", **options
        )
        _loaded["translate"], version = _ctranslate2, f"CTranslate2 {ctranslate2.__version__}"
    else:
        import torch
        import transformers

        torch.set_num_threads(sizes.threads)
        _loaded["model"] = transformers.MarianMTModel.from_pretrained(
            directory / "hugging_face"
        ).eval()
        _loaded["translate"] = _hugging_face
        version = f"Transformers {transformers.__version__}, torch {torch.__version__}"
    return {"version": f"{version}; float32, no copying"}


def decode(texts: list[str], batch: int) -> processes.Answer:
    """Translates texts in batches, in their order.

    Returns:
        Seconds, outputs and their numbers of tokens.
    """
    outputs: list[list[str]] = []
    with processes.Timer() as timer:
        for start in range(0, len(texts), batch):
            outputs += _loaded["translate"]([text.split() for text in texts[start : start + batch]])
    return {
        **timer.facts,
        "outputs": [" ".join(output) for output in outputs],
        "lengths": [len(output) for output in outputs],
    }


# As ours: the first epoch is not measured.
EPOCHS = 3
# Where there is no target to predict.
_IGNORED = -100


def train(job: str, data: str, folder: str, mixed_precision: bool = False) -> processes.Answer:
    """Trains Marian's network on the corpus' first pairs, in batches of pairs of similar lengths.

    Args:
        job: a `Job`, as JSON.
        data: the corpus.
        folder: not used.
        mixed_precision: whether the products are in bfloat16, by PyTorch's autocast.

    Returns:
        Rates from the end of the first epoch on, and the losses after each epoch.
    """
    import torch
    import transformers

    sizes = Job.from_json(job)
    torch.set_num_threads(sizes.threads)
    pairs = corpus.read(data, "train")
    chosen, evaluated = corpus.training_pairs(pairs, sizes)
    known = [
        {word: number for number, word in enumerate((END, UNKNOWN, *words))}
        for words in (corpus.frequent_words(lines, sizes.vocabulary - 3) for lines in zip(*pairs))
    ]
    batches = _training_batches(chosen, known, sizes)
    model = untrained(
        sizes, dropout=0.2, attention_dropout=0.2, activation_dropout=0.2, two_vocabularies=True
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=sizes.learning_rate)
    shuffled, seconds, losses, eval_losses = random.Random(1), [], [], []
    for _ in range(EPOCHS):
        model.train()
        shuffled.shuffle(batches)
        total, tokens = 0.0, 0
        with processes.Timer() as timer:
            for batch in batches:
                with torch.autocast("cpu", torch.bfloat16, enabled=mixed_precision):
                    loss = model(**batch).loss
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                count = int((batch["labels"] != _IGNORED).sum())
                total, tokens = total + count * loss.item(), tokens + count
            model.eval()
            with torch.inference_mode():
                (whole,) = _training_batches(evaluated, known, sizes)
                eval_losses.append(model(**whole).loss.item())
        seconds.append(timer.facts["seconds"])
        losses.append(total / tokens)
    updates = [len(batches) * number for number in range(1, EPOCHS + 1)]
    each = sum(seconds[1:]) / (EPOCHS - 1)
    return {
        "version": f"Transformers {transformers.__version__}, torch {torch.__version__}",
        "parameters": sum(value.numel() for value in model.parameters()),
        "source_rate": sum(len(source.split()) for source, _ in chosen) / each,
        "target_rate": sum(len(target.split()) + 1 for _, target in chosen) / each,
        "pairs_an_update": len(chosen) / len(batches),
        "losses": [list(point) for point in zip(updates, losses)],
        "eval_losses": [list(point) for point in zip(updates, eval_losses)],
    }


def _training_batches(
    pairs: Sequence[corpus.Pair], known: Sequence[dict[str, int]], job: Job
) -> list[dict[str, Any]]:
    """Returns batches of the job's size: inputs of the model by name."""
    import torch

    ids = [
        [
            [*(words.get(word, words[UNKNOWN]) for word in line.split()), words[END]]
            for line, words in zip(pair, known)
        ]
        for pair in pairs
    ]
    ids.sort(key=lambda sides: (len(sides[1]), len(sides[0])))
    batches = []
    for start in range(0, len(ids), job.training_batch):
        sources, targets = zip(*ids[start : start + job.training_batch])
        inputs, labels = (
            torch.tensor([line + [fill] * (max(map(len, side)) - len(line)) for line in side])
            for side, fill in ((sources, job.vocabulary - 1), (targets, _IGNORED))
        )
        batches.append(
            {
                "input_ids": inputs,
                "attention_mask": (inputs != job.vocabulary - 1).long(),
                "labels": labels,
            }
        )
    return batches


def _ctranslate2(sentences: Sequence[list[str]]) -> list[list[str]]:
    job = _loaded["job"]
    results = _loaded["model"].translate_batch(
        [[*words, END] for words in sentences],
        beam_size=job.beam,
        min_decoding_length=job.length,
        max_decoding_length=job.length,
    )
    return [result.hypotheses[0] for result in results]


def _hugging_face(sentences: Sequence[list[str]]) -> list[list[str]]:
    import torch

    job, tokens = _loaded["job"], _loaded["tokens"]
    numbers = _loaded.setdefault("numbers", {token: number for number, token in enumerate(tokens)})
    padding = numbers[PADDING]
    longest = max(map(len, sentences)) + 1
    lines = [
        [*(numbers.get(word, numbers[UNKNOWN]) for word in words), numbers[END]]
        for words in sentences
    ]
    ids = torch.tensor([line + [padding] * (longest - len(line)) for line in lines])
    with torch.inference_mode():
        outputs = _loaded["model"].generate(
            input_ids=ids,
            attention_mask=(ids != padding).long(),
            num_beams=job.beam,
            min_new_tokens=job.length,
            max_new_tokens=job.length,
            # Otherwise the padding is a word like any other.
            bad_words_ids=[[padding]],
        )
    return [[tokens[number] for number in line[1:].tolist()] for line in outputs]


if __name__ == "__main__":
    processes.serve({"make": make, "load": load, "decode": decode, "train": train})
