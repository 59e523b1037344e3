"""Finds the model that a candidate is compared with."""

from ml_metadata.metadata_store import MetadataStore
from tfx.components.evaluator import constants
from tfx.dsl.components.common import resolver
from tfx.types import Artifact

CANDIDATE, MODEL, BLESSING = "candidate", "model", "model_blessing"


class LastOtherBlessedModelStrategy(resolver.ResolverStrategy):
    """Resolves the model that was blessed last, other than the candidate itself.

    In a repeated run, TFX's own `LatestBlessedModelStrategy` finds the very model that is to be
    judged. The Evaluator would compare it with itself, and bless and push it again, or refuse it if
    an improvement is required. With this strategy a repeated run has the same inputs as before, so
    Evaluator and Pusher come from the cache.
    """

    def resolve_artifacts(
        self, store: MetadataStore, input_dict: dict[str, list[Artifact]]
    ) -> dict[str, list[Artifact]]:
        """Returns one artifact for each of `model` and `model_blessing`.

        Both are empty if no other model was blessed.
        """
        own = {model.id for model in input_dict[CANDIDATE]}
        models = {model.id: model for model in input_dict[MODEL]}
        resolved: dict[str, list[Artifact]] = {
            CANDIDATE: input_dict[CANDIDATE],
            MODEL: [],
            BLESSING: [],
        }
        for blessing in sorted(
            input_dict[BLESSING], key=lambda artifact: artifact.id, reverse=True
        ):
            judged = blessing.get_int_custom_property(
                constants.ARTIFACT_PROPERTY_CURRENT_MODEL_ID_KEY
            )
            blessed = blessing.get_int_custom_property(constants.ARTIFACT_PROPERTY_BLESSED_KEY)
            if blessed and judged in models and judged not in own:
                return {**resolved, MODEL: [models[judged]], BLESSING: [blessing]}
        return resolved
