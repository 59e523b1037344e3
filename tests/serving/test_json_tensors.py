"""JSON to tensors and back, as TensorFlow Serving has them.

Cases and values are those of its `json_tensor_test.cc` where it has them.
"""

import base64
import json

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import predict_pb2

from serving import json_tensors
from serving.errors import RequestRefused
from serving.tensor_protos import encode

DTYPES = [
    *(tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64),
    *(tf.half, tf.bfloat16, tf.float32, tf.float64),
]


def read(body, **types):
    """Returns the inputs that a body makes for inputs of these types, as arrays."""
    signature = meta_graph_pb2.SignatureDef()
    for name, dtype in types.items():
        signature.inputs[name].dtype = dtype.as_datatype_enum
    text = body if isinstance(body, (str, bytes)) else json.dumps(body)
    value = json_tensors.parse(text.encode() if isinstance(text, str) else text)
    request, _ = json_tensors.read_request(value, {"serving_default": signature}, "serving_default")
    return {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}


def refusal(body, **types):
    with pytest.raises(RequestRefused) as caught:
        read(body, **types)
    assert caught.value.code.name == "INVALID_ARGUMENT"
    return caught.value.sentence


def written(by_rows=True, **outputs):
    response = predict_pb2.PredictResponse()
    for name, array in outputs.items():
        response.outputs[name].CopyFrom(encode(np.asarray(array)))
    return json_tensors.write_response(response, by_rows)


# Requests


def test_rows_and_columns():
    assert read({"instances": [[1, 2], [3, 4], [5, 6]]}, x=tf.int32)["x"].shape == (3, 2)
    assert read({"inputs": [[[1, 2], [3, 4]]]}, x=tf.int32)["x"].shape == (1, 2, 2)
    assert read({"inputs": 5}, x=tf.int32)["x"].shape == ()
    mixed = {"n": [[[1, 2]]], "s": ["foo", "bar"], "b": {"b64": "aGVsbG8="}}
    found = read({"inputs": mixed}, n=tf.int32, s=tf.string, b=tf.string)
    assert found["n"].shape == (1, 1, 2) and found["s"].shape == (2,)
    assert found["b"].shape == () and found["b"].item() == b"hello"
    rows = '{"instances": [{"f": [1.0, NaN], "d": [NaN]}, {"f": [2, Infinity], "d": [-Infinity]}]}'
    found = read(rows, f=tf.float32, d=tf.float64)
    np.testing.assert_array_equal(found["f"], np.float32([[1, np.nan], [2, np.inf]]))
    np.testing.assert_array_equal(found["d"], [[np.nan], [-np.inf]])


@pytest.mark.parametrize(
    "inputs, shape", [([], (0,)), ([[]], (1, 0)), ([[], []], (2, 0)), ([[[]], [[]]], (2, 1, 0))]
)
@pytest.mark.parametrize("dtype", [tf.float32, tf.string, tf.bool])
def test_empty_lists(inputs, shape, dtype):
    assert read({"inputs": inputs}, x=dtype)["x"].shape == shape
    if inputs:
        assert read({"instances": inputs}, x=dtype)["x"].shape == shape
    else:
        assert "at least one element" in refusal({"instances": []}, x=dtype)


@pytest.mark.parametrize(
    "body, sentence",
    [
        ({"instances": [[1, 2], [3, 4], [5, 6, 7]]}, "uneven"),
        ({"instances": [[1, 2], [3, 4], [[5, 6]]]}, "uneven"),
        ({"instances": [1, [1]]}, "uneven"),
        ({"instances": [[1, 2], ["a", "b"]]}, "must be of type int32; got 'a'"),
        ({"instances": [{"x": 1}, 2]}, "must name the same inputs"),
        ({"instances": [{"x": 1, "y": 2}]}, "The input 'y' is not known."),
        ({"instances": [{}]}, "must name x"),
        ({"instances": [1], "inputs": [1]}, "either 'instances' or 'inputs'"),
        ({"instances": [{"b64": "AA=="}]}, "must be of type int32; got an object"),
        ({"instances": [1.0]}, "must be of type int32; got 1.0"),
        ({"instances": [True]}, "must be of type int32; got True"),
        ({"instances": [2**31]}, "cannot hold 2147483648"),
        ("[" * 9 + "]" * 9, "one JSON object"),
        (b'{"instances": ["\xff"]}', "not valid JSON"),
        ('{"instances": [1]} x', "not valid JSON"),
        ("", "not valid JSON"),
    ],
)
def test_requests_that_do_not_fit(body, sentence):
    assert sentence in refusal(body, x=tf.int32)


def test_several_inputs_must_be_named():
    assert "Name the inputs" in refusal({"instances": [1]}, x=tf.int32, y=tf.int32)
    assert "Name the inputs" in refusal({"inputs": [1]}, x=tf.int32, y=tf.int32)
    assert "Missing named input: y" in refusal({"inputs": {"x": 1}}, x=tf.int32, y=tf.int32)
    assert "no inputs" in refusal({"inputs": {"x": 1}})


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_limits_of_numbers(dtype):
    if dtype.is_integer:
        for number in (dtype.min, dtype.max):
            assert read({"inputs": number}, x=dtype)["x"].item() == number
        for number in (dtype.min - 1, dtype.max + 1):
            assert "cannot hold" in refusal({"inputs": number}, x=dtype)
        return
    largest = float(dtype.max)
    assert read({"inputs": -largest}, x=dtype)["x"] == -largest
    if largest < 1e300:
        assert "without loss of precision" in refusal({"inputs": largest * 4}, x=dtype)
    assert "not valid JSON" in refusal('{"inputs": 1e400}', x=dtype)


def test_whole_numbers_must_be_exact_as_floats():
    assert read({"inputs": -(2**24) + 1}, x=tf.float32)["x"] == -(2**24) + 1
    assert "without loss" in refusal({"inputs": 16777217}, x=tf.float32)
    assert read({"inputs": 16777217.0}, x=tf.float32)["x"] == 16777216
    assert "without loss" in refusal({"inputs": 9007199254740993}, x=tf.float64)


def test_truth_values():
    assert read({"inputs": [True, False]}, x=tf.bool)["x"].tolist() == [True, False]
    assert "must be of type bool; got 1" in refusal({"inputs": [1]}, x=tf.bool)


@given(st.binary(), st.booleans(), st.integers(0, 9))
def test_base64_without_padding_and_with_white_space(content, padded, place):
    text = base64.b64encode(content).decode()
    text = text if padded else text.rstrip("=")
    text = text[:place] + "\r\n \t" + text[place:]
    assert read({"inputs": {"b64": text}}, x=tf.string)["x"].item() == content
    assert read({"instances": [{"b64": text}]}, x=tf.string)["x"].tolist() == [content]


@pytest.mark.parametrize(
    "text, content", [("YQ..", b"a"), ("YR", b"a"), ("", b""), ("Y Q = =", b"a")]
)
def test_other_spellings_of_base64(text, content):
    assert read({"inputs": {"b64": text}}, x=tf.string)["x"].item() == content


@pytest.mark.parametrize(
    "text", ["Y", "YQ=", "YQ===", "YWFh=", "-_-_", "é", "YQ==YQ==", "====", "="]
)
def test_what_is_no_base64(text):
    assert "not base64" in refusal({"inputs": {"b64": text}}, x=tf.string)


def test_an_object_that_only_looks_like_bytes():
    assert "not known" in refusal({"instances": [{"b64": 5}]}, x=tf.string)
    assert read({"instances": [{"b64": 5}]}, b64=tf.int32)["b64"].tolist() == [5]
    assert "got an object" in refusal({"inputs": [{"b64": "YQ", "x": 1}]}, x=tf.string)


# Answers


def test_floats_are_as_short_as_their_type_allows():
    numbers = [9000000, 999999, 0.5, 0.0003, 0.00003, 555557.5, 0.2]
    assert written(x=np.float32(numbers)) == {"predictions": numbers}
    assert written(x=np.float64([0.1 + 0.2])) == {"predictions": [0.1 + 0.2]}
    assert written(x=np.float16([0.1])) == {"predictions": [0.1]}
    assert written(x=np.array([0.1, 3.0], ml_dtypes.bfloat16)) == {"predictions": [0.1, 3.0]}
    text = json.dumps(written(x=np.float32([0.2, np.nan, np.inf, -np.inf, 3])))
    assert text == '{"predictions": [0.2, NaN, Infinity, -Infinity, 3.0]}'


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@given(data=st.data())
def test_numbers_come_back_as_they_were(dtype, data):
    kind = np.dtype(dtype.as_numpy_dtype)
    bits = data.draw(arrays.arrays(np.dtype(f"u{kind.itemsize}"), (2, 3)))
    array = bits.view(kind)
    ((name, rows),) = json.loads(json.dumps(written(x=array))).items()
    again = np.array(rows).astype(kind) if dtype.is_floating else np.array(rows, kind)
    assert name == "predictions"
    np.testing.assert_array_equal(again.astype(float), array.astype(float))


def test_rows_need_outputs_with_rows():
    outputs = {"a": np.zeros((2, 3)), "b": np.zeros((1, 3))}
    with pytest.raises(RequestRefused, match="b has inconsistent batch size: 1 expecting: 2"):
        written(**outputs)
    assert set(written(by_rows=False, **outputs)["outputs"]) == {"a", "b"}
    for scalars in ({"a": 1.5}, {"a": 1.5, "b": 2.5}, {"a": [1.5], "b": 2.5}):
        with pytest.raises(RequestRefused, match="has no shape information"):
            written(**scalars)
    assert written(by_rows=False, a=1.5) == {"outputs": 1.5}
    assert written(by_rows=False, a=1.5, b=True) == {"outputs": {"a": 1.5, "b": True}}
    assert written(a=np.zeros((0, 2)), b=np.zeros((0, 3))) == {"predictions": []}


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("by_rows", [True, False])
def test_numbers_that_json_lacks(dtype, by_rows):
    with pytest.raises(RequestRefused, match="Failed to write JSON value for tensor type: complex"):
        written(by_rows, x=np.array([1 + 2j], dtype))


def test_bytes_and_texts():
    texts = np.array([[b"hello", b"world"], [b"tf", b"\xff"]], object)
    assert written(x=texts) == {"predictions": [["hello", "world"], ["tf", "\ufffd"]]}
    first = [{"b64": "aGVsbG8="}, {"b64": "d29ybGQ="}]
    assert written(x_bytes=texts)["predictions"][0] == first
    assert written(x_bytes=texts)["predictions"][1][1] == {"b64": "/w=="}
