"""The programs that decode in a comparison."""

import dataclasses
import pathlib
from collections.abc import Mapping

from benchmarks.peers import processes
from serving import processors


@dataclasses.dataclass(frozen=True)
class Decoder:
    """A program that takes part in a comparison.

    Attributes:
        module: answers its tasks.
        environment: the peer whose environment it needs; None for this one.
        load, decode, make: further arguments of these tasks.
        side_by_side: whether every batch has one thread, and as many batches are decoded at a time
            as there are threads: by copies of a peer, by threads of ours.
    """

    module: str
    environment: str | None
    load: Mapping[str, str]
    decode: Mapping[str, str]
    make: Mapping[str, int] = dataclasses.field(default_factory=dict)
    side_by_side: bool = False

    def start(
        self, python: str | pathlib.Path, threads: int, log: pathlib.Path
    ) -> processes.Program | processes.Copies:
        """Starts its process, or copies of it."""
        if not self.side_by_side:
            return processes.Program(python, self.module, threads, log)
        if self.environment:
            return processes.Copies(python, self.module, threads, log)
        return processes.Program(
            python, self.module, threads, log, variables=processors.variables(1)
        )

    @property
    def model(self) -> str:
        """Name of the model, which programs may share."""
        return "_".join([self.module, *(f"{key}_{value}" for key, value in self.make.items())])


_TRANSFORMERS = "transformers_and_ctranslate2"
# How many words decoding chooses among, of 8,000; docs/results/lexicons.md shows their quality.
SHORTLIST = 256
SMALL_SHORTLIST = 128
PROGRAMS = {
    "ours": Decoder("ours", None, {}, {"signature": "serving_default"}),
    "ours_no_xla": Decoder("ours", None, {}, {"signature": "serving_default_no_xla"}),
    "ours_shortlist": Decoder(
        "ours", None, {}, {"signature": "serving_default"}, {"shortlist": SHORTLIST}
    ),
    "ours_shortlist_no_xla": Decoder(
        "ours", None, {}, {"signature": "serving_default_no_xla"}, {"shortlist": SHORTLIST}
    ),
    "ours_small_shortlist": Decoder(
        "ours", None, {}, {"signature": "serving_default"}, {"shortlist": SMALL_SHORTLIST}
    ),
    "opennmt_py": Decoder("opennmt_py", "opennmt_py", {}, {}),
    "opennmt_tf": Decoder("opennmt_tf", "opennmt_tf", {}, {}),
    "ctranslate2": Decoder(_TRANSFORMERS, "transformers", {"program": "ctranslate2"}, {}),
    "hugging_face": Decoder(_TRANSFORMERS, "transformers", {"program": "hugging_face"}, {}),
}
#: The programs that take part by default; the others are compared with the first peer.
DEFAULTS = {
    "rnn": (
        "ours",
        "ours_no_xla",
        "ours_shortlist",
        "ours_shortlist_no_xla",
        "ours_small_shortlist",
        "opennmt_py",
    ),
    "transformer": ("ours", "ours_no_xla", "ctranslate2", "hugging_face"),
}
PROGRAMS |= {
    f"{name}_side_by_side": dataclasses.replace(PROGRAMS[name], side_by_side=True)
    for name in ("ours", "ours_shortlist", "ours_small_shortlist", "opennmt_py", "ctranslate2")
}
#: What tables call the programs, of decoding and of training.
LABELS = {
    "ours_no_xla": "ours, no XLA",
    "ours_shortlist": f"ours, {SHORTLIST} words",
    "ours_shortlist_no_xla": f"ours, {SHORTLIST} words, no XLA",
    "ours_small_shortlist": f"ours, {SMALL_SHORTLIST} words",
    "ours_large_vocabulary": "ours, large vocabulary",
    "ours_mixed": "ours, bfloat16",
    "ours_mixed_large_vocabulary": "ours, bfloat16, large vocabulary",
    "opennmt_py": "OpenNMT-py 3.5.1",
    "opennmt_tf": "OpenNMT-tf 2.32, no copying",
    "ctranslate2": "CTranslate2 4.8.5",
    "hugging_face": "Hugging Face, Transformers 4.57.6",
    "hugging_face_mixed": "Hugging Face, bfloat16",
}
LABELS |= {
    f"{name}_side_by_side": f"{LABELS.get(name, name)}, side by side"
    for name in ("ours", "ours_shortlist", "ours_small_shortlist", "opennmt_py", "ctranslate2")
}
