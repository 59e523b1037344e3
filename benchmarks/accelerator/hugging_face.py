"""The PyTorch peer on the same device, in a process of its own:
Hugging Face's Transformer of the same sizes, untrained, which does not copy.
"""

from benchmarks.peers import processes
from benchmarks.peers.job import Job
from benchmarks.peers.transformers_and_ctranslate2 import untrained

FIRST_WORD = 9
_loaded = {}


def load(name, job, dtype):
    """Builds a network that `decode` knows by this name, on the GPU if there is one;
    returns its number of parameters and its version.
    """
    import torch
    import transformers

    job = Job.from_json(job)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = untrained(job).to(device, getattr(torch, dtype))
    _loaded[name] = (model, job)
    version = f"Transformers {transformers.__version__}, torch {torch.__version__}, {device}"
    return {"parameters": sum(value.numel() for value in model.parameters()), "version": version}


def decode(name, batch, source_length, calls):
    """Decodes the same batch so many times;
    returns the seconds of a call and the numbers of tokens of its outputs.
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
            # Else the padding is a word like any other.
            found = model.generate(input_ids=ids, bad_words_ids=[[padding]], **options)
        # What is on the host has been computed.
        found = found.cpu()
    return {"seconds": timer.facts["seconds"] / calls, "lengths": [found.shape[1] - 1] * batch}


if __name__ == "__main__":
    processes.serve({"load": load, "decode": decode})
