"""The node that finds the model to compare with."""

import tfx.v1 as tfx
from tfx.types import BaseChannel

from components.last_blessed_model import strategy


def last_other_blessed_model(candidate: BaseChannel) -> tfx.dsl.Resolver:
    """Returns the Resolver of the model that this pipeline's earlier runs blessed last.

    Args:
        candidate: channel of the model that is to be judged, which is never the answer.
    """
    types = tfx.types.standard_artifacts
    return tfx.dsl.Resolver(
        strategy_class=strategy.LastOtherBlessedModelStrategy,
        **{
            strategy.CANDIDATE: candidate,
            strategy.MODEL: tfx.dsl.Channel(type=types.Model),
            strategy.BLESSING: tfx.dsl.Channel(type=types.ModelBlessing),
        },
    ).with_id("LastBlessedModel")
