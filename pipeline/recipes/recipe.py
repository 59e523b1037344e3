"""A recipe:
one typed, frozen dataclass tree that says everything that makes one run differ from another.
"""

import dataclasses
import json

from pipeline.recipes.choices import TASKS
from pipeline.recipes.fields import build, choice
from pipeline.recipes.rules import check_together
from pipeline.recipes.sections import (
    BaselineConfig,
    DataConfig,
    DecodingConfig,
    EvaluationConfig,
    LanguageModelConfig,
    LexiconConfig,
    ModelConfig,
    SegmentationConfig,
    TrainingConfig,
    TuningConfig,
    VocabularyConfig,
)
from pipeline.recipes.tuning_rules import check_tuning


@dataclasses.dataclass(frozen=True)
class Recipe:
    """All of a run's choices; `name` is the model's name when served."""

    name: str
    description: str = ""
    licence: str = ""  # of the data, in words, for the model card
    task: str = choice(*TASKS, default="seq2seq")
    data: DataConfig = DataConfig()
    vocabulary: VocabularyConfig = VocabularyConfig()
    lexicon: LexiconConfig = LexiconConfig()
    model: ModelConfig = ModelConfig()
    segmentation: SegmentationConfig = SegmentationConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    baseline: BaselineConfig = BaselineConfig()
    language_model: LanguageModelConfig = LanguageModelConfig()
    tuning: TuningConfig = dataclasses.field(default_factory=TuningConfig)

    def __post_init__(self):
        check_together(self)
        check_tuning(self)

    def to_dict(self):
        """Returns the recipe as plain dicts, lists and scalars;
        without `tuning` where that is as in a recipe that does not say.

        So what was trained before there was such a section is found in the cache.
        """
        tree = json.loads(json.dumps(dataclasses.asdict(self)))
        if self.tuning == TuningConfig():
            del tree["tuning"]
        return tree

    def to_json(self):
        """Returns the recipe as one JSON string: how it travels into TFX components."""
        return json.dumps(self.to_dict(), sort_keys=True)

    @classmethod
    def from_json(cls, text):
        """Reads what `to_json` wrote."""
        return recipe_from_dict(json.loads(text))


def recipe_from_dict(tree):
    """Builds a `Recipe` from nested dicts, checking every key and value.

    Raises:
        RecipeError: an unknown key or impossible value; the sentence names the key.
    """
    return build(Recipe, tree, prefix="")


def section_from_json(section_class, text):
    """Reads one section of a recipe, such as a `DataConfig`, that travelled as JSON.

    Raises:
        RecipeError: an unknown key or impossible value.
    """
    return build(section_class, json.loads(text), prefix="")
