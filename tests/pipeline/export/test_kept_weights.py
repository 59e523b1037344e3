"""A SavedModel with a Keras model in it runs where its graph alone is run, as in TensorFlow
Serving.
"""

import numpy as np

from pipeline.export.kept_weights import keep


def test_the_graph_computes_with_the_weights_that_it_restores(tmp_path):
    import keras
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2

    from serving.limits import Limits
    from serving.servable import Servable

    model = keras.Sequential([keras.layers.Dense(2)])
    model.build((None, 3))
    model.set_weights([np.arange(6.0).reshape(3, 2), np.array([0.5, -0.5])])
    module = tf.Module()
    keep(module, model)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def call(x):
        return {"y": module.model(x)}

    tf.saved_model.save(module, str(tmp_path), signatures=call)
    servable = Servable(tmp_path, 1)
    request = predict_pb2.PredictRequest()
    request.inputs["x"].CopyFrom(tf.make_tensor_proto([[1.0, 0.0, 2.0]]))
    response = servable.predict(request, Limits())
    assert tf.make_ndarray(response.outputs["y"]).tolist() == [[8.5, 10.5]]
    servable.close()
    # Python's loader finds them as well.
    assert tf.saved_model.load(str(tmp_path)).signatures["serving_default"](x=tf.ones([1, 3]))[
        "y"
    ].numpy().tolist() == [[6.5, 8.5]]
