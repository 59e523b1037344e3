"""All keys of a recipe, before any rule has checked them."""

import dataclasses

from pipeline.recipes.choices import TASKS
from pipeline.recipes.fields import choice
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


@dataclasses.dataclass(frozen=True)
class RecipeKeys:
    """The keys of a recipe; in a `Recipe` they fit together."""

    # The model's name when served.
    name: str
    # What the model is for, in words, for the report and the model card.
    description: str = ""
    # The data's licence, in words, for the model card.
    licence: str = ""
    # What is learned: texts out of texts, or how likely each word of a text is.
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

    @property
    def heads(self) -> dict[str, str]:
        """The heads of the model and of its baseline, by the key that names each."""
        return {"model.head": self.model.head, "baseline.head": self.baseline.head}
