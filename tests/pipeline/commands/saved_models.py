"""SavedModels that look like Verbatim's, as far as a test needs."""


def save_model(folder, signatures):
    """Writes a SavedModel whose signatures take `source` and give what they are told:
    dict of name to outputs.
    """
    import tensorflow as tf

    module = tf.Module()
    spec = tf.TensorSpec([None], tf.string, name="source")
    functions = {}
    for name, outputs in signatures.items():

        def answer(source, outputs=outputs):
            return {output: tf.identity(source) for output in outputs}

        functions[name] = tf.function(answer).get_concrete_function(spec)
    module.kept = list(functions.values())
    tf.saved_model.save(module, str(folder), signatures=functions)
