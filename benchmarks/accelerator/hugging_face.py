"""The PyTorch peer on the same device, in a process of its own.

It is Hugging Face's Transformer of the same sizes, untrained, which does not copy.
"""

from typing import Any

from benchmarks.peers import processes
from benchmarks.peers.job import Job
from benchmarks.peers.transformers_and_ctranslate2 import untrained

FIRST_WORD = 9
#: Networks and their sizes by name.
_loaded: dict[str, tuple[Any, Job]] = {}


def load(name: str, job: str, dtype: str) -> processes.Answer:
    """Builds a network for `decode`, on the GPU if there is one.

    Returns:
        Its number of parameters and its version.
    """
    import torch
    import transformers

    sizes = Job.from_json(job)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = untrained(sizes).to(device, getattr(torch, dtype))
    _loaded[name] = (model, sizes)
    version = f"Transformers {transformers.__version__}, torch {torch.__version__}, {device}"
    return {"parameters": sum(value.numel() for value in model.parameters()), "version": version}


def decode(name: str, batch: int, source_length: int, calls: int) -> processes.Answer:
    """Decodes the same batch `calls` times.

    Returns:
        The seconds of a call, and the numbers of tokens of its outputs.
    """
    import torch

    model, job = _loaded[name]
    padding = job.vocabulary - 1
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(FIRST_WORD, padding, (batch, source_length), generator=generator).to(
        model.device
    )
    options = {"num_beams": job.beam, "min_new_tokens": job.length, "max_new_tokens": job.length}
    with processes.Timer() as timer, torch.inference_mode():
        for _ in range(calls):
            # Otherwise the padding is a word like any other.
            outputs = model.generate(input_ids=ids, bad_words_ids=[[padding]], **options)
        # Outputs on the host have been computed.
        outputs = outputs.cpu()
    return {"seconds": timer.facts["seconds"] / calls, "lengths": [outputs.shape[1] - 1] * batch}


if __name__ == "__main__":
    processes.serve({"load": load, "decode": decode})
