import pytest

from keras_models.layers import CopyHead


def test_a_head_must_answer_both_questions():
    class Half(CopyHead):
        pass

    head = Half(vocabulary_size=7)
    with pytest.raises(NotImplementedError, match="Half must define target_log_prob"):
        head.target_log_prob({}, {}, None)
    with pytest.raises(NotImplementedError, match="Half must define step_log_probs"):
        head.step_log_probs({}, {})
    assert head.get_config()["vocabulary_size"] == 7
