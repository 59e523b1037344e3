"""TensorFlow's error messages, made readable."""

import pytest

from serving.human_sentence import human_sentence


@pytest.mark.parametrize(
    "message, sentence",
    [
        (
            "Graph execution error:\n\nDetected at node Assert defined at (most recent call "
            "last):\n"
            '<stack traces unavailable>\nassertion failed: [Too \\"long\\" a\\nline] [Condition x '
            "< y] [x = ] [14]\n"
            "\t [[{{node Assert}}]] [Op:__inference_f_1]",
            'Too "long" a line',
        ),
        (
            "Graph execution error:\n\nDetected at node 'S' defined at (most recent call last):\n"
            "    File \"a.py\", line 3, in <module>\n      x = secret()\nNode: 'S'\n"
            "2 root error(s) found.\n  (0) INVALID_ARGUMENT:  Bad number: ab\n\t [[{{node S}}]]\n"
            "  (1) INVALID_ARGUMENT:  Bad number: ab\n0 successful operations.\n0 derived errors "
            "ignored. [Op:__f_1]",
            "Bad number: ab",
        ),
        (
            "{{function_node __wrapped__A}} Bad shape [2] vs. [3] [Op:Add] name: ",
            "Bad shape [2] vs. [3]",
        ),
        ("", "The model refused the input."),
    ],
)
def test_human_sentence(message, sentence):
    assert human_sentence(message) == sentence
