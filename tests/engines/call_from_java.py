"""Calls an exported model from Java, without Python, and compares the answers with our own.

python -m tests.engines.call_from_java MODELS
"""

import base64
import functools
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text

from pipeline.export.loaded_model import version_directory
from tests.engines import clusters

PROGRAM = pathlib.Path(__file__).parent / "java" / "CallModel.java"
#: The signatures that XLA does not compile.
NOT_COMPILED = ("explain", "serving_default_no_xla", "score")
#: What is inside of TensorFlow for Java 1.0.0. The libraries of TensorFlow Text fit no other.
TENSORFLOW = "2.16"
_SOURCES = ("Open the file %(a)s", "Delete page %(x_1)s now", "été 42")
#: What is asked of the model.
CALLS = (
    *((name, {"source": _SOURCES}) for name in ("serving_default", "n_best", "explain")),
    ("serving_default_no_xla", {"source": _SOURCES}),
    ("score", {"source": _SOURCES[:1], "target": ("Ouvrir le fichier %(a)s",)}),
)


def compare(models: pathlib.Path, calls: Sequence[tuple[str, Mapping[str, Sequence[str]]]]) -> int:
    """Returns how many outputs are the same in TensorFlow for Java, called by four threads.

    The same bytes; but of functions that XLA does not compile, numbers may differ in their last
    digits, since the two builds of TensorFlow sum in orders of their own.

    Args:
        models: a folder of numbered versions.
        calls: signatures, and the texts of each of their inputs, without tabs and bars.

    Raises:
        RuntimeError: an output differs, or Java failed.
    """
    version = version_directory(models)
    lines = [
        "\t".join([name, *(f"{key}={'|'.join(texts)}" for key, texts in inputs.items())])
        for name, inputs in calls
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        libraries = pathlib.Path(tensorflow_text.__file__).parent / "python" / "ops"
        jars = f"{clusters.FETCHED / 'jars' / 'java'}/*"
        done = subprocess.run(
            ["java", "-cp", jars, str(PROGRAM), str(version), str(libraries), file.name],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"Java failed: {done.stderr[-3000:]}")
    found = dict(
        line.rpartition("\t")[::2] for line in done.stdout.splitlines() if line[:1].isdigit()
    )
    expected = _expected(tf.saved_model.load(str(version)), calls)
    differ = sorted(found.keys() ^ expected.keys())
    differ += [key for key in found.keys() & expected.keys() if not expected[key](found[key])]
    if differ:
        raise RuntimeError("Java answers otherwise: " + "; ".join(differ))
    return len(expected)


def _expected(
    model: Any, calls: Sequence[tuple[str, Mapping[str, Sequence[str]]]]
) -> dict[str, Callable[[str], bool]]:
    """Returns what says of each output's content in Base64 whether it is right.

    Keys are the number of the call, the name and the shape.
    """
    expected = {}
    for number, (name, inputs) in enumerate(calls):
        outputs = model.signatures[name](
            **{key: tf.constant(list(texts)) for key, texts in inputs.items()}
        )
        for key, tensor in outputs.items():
            shape = ",".join(map(str, tensor.shape))
            is_right = functools.partial(_is_right, tensor.numpy(), name in NOT_COMPILED)
            expected[f"{number}\t{key}\t{shape}"] = is_right
    return expected


def _is_right(array: np.ndarray, is_close_enough: bool, content: str) -> bool:
    """Returns whether content is that of an array."""
    if array.dtype == object:
        return content == ",".join(base64.b64encode(text).decode() for text in array.ravel())
    found = np.frombuffer(base64.b64decode(content), array.dtype)
    if is_close_enough:
        return np.allclose(found, array.ravel(), rtol=1e-5, atol=1e-6)
    return found.tobytes() == array.tobytes()


def main() -> None:
    """Compares, where TensorFlow for Java is of the version that made the model."""
    if not tf.__version__.startswith(TENSORFLOW):
        print(f"skipped, for it has TensorFlow {TENSORFLOW}, and this is {tf.__version__}")
        return
    print(f"{compare(pathlib.Path(sys.argv[1]), CALLS)} outputs are the same")


if __name__ == "__main__":
    main()
