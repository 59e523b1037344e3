"""Outputs as the report shows them."""

from pipeline.reporting import samples


def test_tokens_join_as_the_tokenizer_says():
    assert (
        samples.join_tokens(["Hello", "￭,", "%s", "￭", "%d", "(￭", "a", "￭)", "d'￭", "un"])
        == "Hello, %s%d (a) d'un"
    )
