"""The corpus of a pair, in the Transform graph."""

from pipeline.recipes.recipe import recipe_from_dict
from tests.pipeline.export import tiny_models


def test_the_graph_knows_the_corpus_of_a_pair_and_serves_without_one(tmp_path):
    import tensorflow as tf

    from pipeline.export.transform_graph import TransformGraph
    from pipeline.features import feature_names

    recipe = recipe_from_dict(
        {
            "name": "mixed",
            "data": {"corpora": ["news*", "*"]},
            "training": {"corpus_weights": [1, 2]},
        }
    )
    output = tiny_models.transform_tiny(tmp_path, recipe, [("a b", "c")], ["a"], ["c"])
    graph = TransformGraph(output)
    texts = tf.constant([["a b"], ["b"]])
    files = tf.constant([["web.tsv"], ["news.tsv"]])
    made = graph({"source": texts, "target": texts, "file": files})
    assert tf.sparse.to_dense(made[feature_names.CORPUS]).numpy().tolist() == [[1], [0]]
    served = graph({"source": texts})
    ids = tf.sparse.to_dense(made["source_ids"]).numpy().tolist()
    assert tf.sparse.to_dense(served["source_ids"]).numpy().tolist() == ids
