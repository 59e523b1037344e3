"""Which model a candidate is compared with."""

from tfx.components.evaluator import constants
from tfx.dsl.components.common import resolver

CANDIDATE, MODEL, BLESSING = "candidate", "model", "model_blessing"


class LastOtherBlessedModelStrategy(resolver.ResolverStrategy):
    """Resolves the model that was blessed last, the candidate itself apart.

    TFX's own `LatestBlessedModelStrategy` finds, in a run that is repeated, the very model that is
    to be judged: the Evaluator would compare it with itself, and bless and push it once more, or
    refuse it where an improvement is demanded. Without it, a repeated run has the inputs that it
    had, so Evaluator and Pusher come from the cache.
    """

    def resolve_artifacts(self, store, input_dict):
        """Returns the channels `model` and `model_blessing` with an artifact each, empty ones where
        no other model was blessed.
        """
        own = {model.id for model in input_dict[CANDIDATE]}
        models = {model.id: model for model in input_dict[MODEL]}
        resolved = {CANDIDATE: input_dict[CANDIDATE], MODEL: [], BLESSING: []}
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
