import pytest

from keras_models.heads.registry import make_head
from keras_models.layers import PointerGenerator, PointerSentinel, SoftmaxHead


def test_heads_by_name():
    assert isinstance(make_head("softmax", 7), SoftmaxHead)
    assert isinstance(make_head("pointer_sentinel", 7), PointerSentinel)
    head = make_head("pointer_generator", 7, dtype="mixed_bfloat16")
    assert isinstance(head, PointerGenerator)
    assert head.vocabulary_size == 7 and head.compute_dtype == "bfloat16"


def test_an_unknown_head_is_named_with_the_known_ones():
    with pytest.raises(
        ValueError, match="no head named 'copynet'; the heads are softmax, pointer_generator, "
    ):
        make_head("copynet", 7)
