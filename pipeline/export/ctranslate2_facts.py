"""The facts beside a model of CTranslate2: how its texts are cut, searched and joined."""

import dataclasses
import json
import os
import pathlib
from typing import Any

import numpy as np

from pipeline.common.errors import VerbatimError
from pipeline.recipes.fields import build
from pipeline.recipes.sections import DataConfig, DecodingConfig

FACTS_FILE = "verbatim.json"
#: The sentencepiece model that cuts the source's words.
MODEL_FILE = "source.model"


class ConvertedModelError(VerbatimError, ValueError):
    """A converted model that cannot be used; its message is one sentence for the user."""


@dataclasses.dataclass(frozen=True)
class Facts:
    """The facts of a converted model.

    Attributes:
        name: the model's name.
        version: the folder of the version that was converted.
        data, decoding: these sections of the recipe.
        without: keys of decoding that the model does without; `decoding` has neutral values for
            them.
        quantization: how the weights are stored.
        translate_batch: arguments of `ctranslate2.Translator.translate_batch` that come closest to
            the search that the recipe asks for.
    """

    name: str
    version: str
    data: DataConfig
    decoding: DecodingConfig
    without: tuple[str, ...]
    quantization: str
    translate_batch: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Returns what `FACTS_FILE` holds."""
        return dataclasses.asdict(self)

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> "Facts":
        """Reads the facts of a converted model.

        Raises:
            ConvertedModelError: the folder has none.
        """
        path = pathlib.Path(folder) / FACTS_FILE
        try:
            tree = json.loads(path.read_text(encoding="utf-8"))
            sections = {
                "data": build(DataConfig, tree.pop("data"), prefix="data."),
                "decoding": build(DecodingConfig, tree.pop("decoding"), prefix="decoding."),
            }
            return cls(**{**tree, **sections, "without": tuple(tree["without"])})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConvertedModelError(
                f"The folder {os.fspath(folder)} has no facts of a converted model in {FACTS_FILE} "
                f"({error}): give a folder that 'verbatim convert' wrote."
            ) from None


def bucket_of(length: int, decoding: DecodingConfig) -> int:
    """Returns the source length that a text of so many tokens is padded to."""
    return next(bucket for bucket in decoding.length_buckets if length <= bucket)


def longest_output(source_length: int, decoding: DecodingConfig) -> int:
    """Returns the longest output, in tokens: `pipeline.features.written_ids.longest_output`."""
    scaled = np.float32(source_length) * np.float32(decoding.max_length_factor)
    return int(scaled) + decoding.max_length_offset
