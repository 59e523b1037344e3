"""The sections of a recipe: a frozen dataclass each, with a default for each key."""

from pipeline.recipes.sections.baseline_config import BaselineConfig
from pipeline.recipes.sections.data_config import DataConfig
from pipeline.recipes.sections.decoding_config import DecodingConfig
from pipeline.recipes.sections.evaluation_config import EvaluationConfig
from pipeline.recipes.sections.language_model_config import LanguageModelConfig
from pipeline.recipes.sections.lexicon_config import LexiconConfig
from pipeline.recipes.sections.metric_bounds import ChangeThresholdsConfig, ThresholdsConfig
from pipeline.recipes.sections.model_config import ModelConfig
from pipeline.recipes.sections.segmentation_config import SegmentationConfig
from pipeline.recipes.sections.training_config import TrainingConfig
from pipeline.recipes.sections.tuning_config import SEARCHED_SECTIONS, TuningConfig
from pipeline.recipes.sections.vocabulary_config import VocabularyConfig

__all__ = [
    "SEARCHED_SECTIONS",
    "BaselineConfig",
    "ChangeThresholdsConfig",
    "DataConfig",
    "DecodingConfig",
    "EvaluationConfig",
    "LanguageModelConfig",
    "LexiconConfig",
    "ModelConfig",
    "SegmentationConfig",
    "ThresholdsConfig",
    "TrainingConfig",
    "TuningConfig",
    "VocabularyConfig",
]
