"""A training on two replicas of one process, and the same on one:
a program, run by `test_data_parallel.py`.

    mirrored_training.py FOLDER

Two processors of TensorFlow's stand for two GPUs. FOLDER gets `mirrored.json`, a list of the two
trainings' facts. (A program, because how many devices there are must be said before TensorFlow does
anything else.)
"""

import json
import pathlib
import sys

from tests.pipeline.training.tiny_training import recipe, train, write_pairs


def main(folder):
    import tensorflow as tf

    from pipeline.training import replicas

    (processor,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        processor, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    files = write_pairs(folder / "pairs.gz")
    made = recipe(epochs=2, gradient_clip_norm=0.5)
    results = []
    for strategy in (
        tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]),
        tf.distribute.get_strategy(),
    ):
        replicas.strategy = lambda strategy=strategy: strategy
        results.append(train(made, files, files)[1])
    (folder / "mirrored.json").write_text(json.dumps(results))
    replicas.strategy = lambda: tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    try:
        train(recipe(accumulated_batches=2), files, files)
    except ValueError as error:
        (folder / "refused.txt").write_text(str(error))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
