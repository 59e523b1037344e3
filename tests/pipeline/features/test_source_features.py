"""Features of source tokens: how a token is written, and tags of a column."""


def test_case():
    import tensorflow as tf

    from pipeline.features import source_features

    expected = {
        "none": ["", "42", "%", "￭,", "東京", "3.5"],
        "lower": ["a", "word", "été", "x86", "￭s", "can't", "σ"],
        "upper": ["A", "NATO", "É", "U.S.", "X86", "ΑΒΓ"],
        "title": ["Paris", "Été", "￭Word", "O'neill", "ǅungla"],
        "mixed": ["iPhone", "McDonald", "PhD", "NATOs"],
    }
    tokens = [token for group in expected.values() for token in group]
    made = source_features.case_ids(tf.constant(tokens)).numpy()
    assert [source_features.CASES[index] for index in made] == [
        name for name in expected for _ in expected[name]
    ]


def test_tags(tmp_path):
    import tensorflow as tf

    from pipeline.features import lookup_tables, source_features

    (tmp_path / "tags").write_text("[PAD]\n[UNK]\nNN\nDT\n")
    table = lookup_tables.vocabulary_table(str(tmp_path / "tags"))
    made = source_features.tag_ids(tf.constant(["DT NN", "", " NN  XX [PAD] "]), table)
    assert made.to_list() == [[3, 2], [], [2, 1, 1]]
    assert source_features.feature_name("pos") == "source_pos"
