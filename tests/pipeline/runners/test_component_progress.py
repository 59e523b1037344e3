"""What is said of each component, out of TFX's messages."""

import logging

from pipeline.common import progress
from pipeline.runners.component_progress import ComponentProgress


def test_a_component_from_the_cache_says_so(caplog):
    logger = logging.getLogger("tfx_messages")
    logger.setLevel(logging.INFO)
    components = ComponentProgress(3)
    logger.addHandler(components)
    with caplog.at_level(logging.INFO, progress.LOGGER.name):
        for message in (
            "Component ExampleGen is running.",
            "A cached execution 7 is used.",
            "Component ExampleGen is finished.",
            "Component Trainer is running.",
            "Going to run a new execution 8",
            "Going to run a new execution: ExecutionInfo(...)",
            "Component Trainer is finished.",
            "Component Resolver is running.",
            "Component Resolver is finished.",
        ):
            logger.info(message)
            if message.startswith("Going to run a new execution 8"):
                progress.say("epoch 1")
    logger.removeHandler(components)
    said = [(r.depth, r.getMessage()) for r in caplog.records if r.name == progress.LOGGER.name]
    assert said == [
        (0, "[1/3] ExampleGen (cached)"),
        (0, "[2/3] Trainer"),
        (1, "epoch 1"),
        (0, "[3/3] Resolver"),
    ]
    assert [(stage["name"], stage["cached"]) for stage in components.stages] == [
        ("ExampleGen", True),
        ("Trainer", False),
        ("Resolver", False),
    ]
