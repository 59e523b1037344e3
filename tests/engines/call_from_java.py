"""Calls an exported model from Java, without Python, and compares the answers with our own.

python -m tests.engines.call_from_java MODELS
"""

import base64
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text

from pipeline.export.loaded_model import version_directory
from tests.engines import clusters

PROGRAM = pathlib.Path(__file__).parent / "java" / "CallModel.java"
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
    """Returns how many outputs are the same bytes in TensorFlow for Java, called by four threads.

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
    found = sorted(line for line in done.stdout.splitlines() if line[:1].isdigit())
    expected = sorted(_expected(tf.saved_model.load(str(version)), calls))
    differ = sorted(set(found) ^ set(expected))
    if differ:
        raise RuntimeError("Java answers otherwise: " + "\n".join(line[:300] for line in differ))
    return len(expected)


def _expected(
    model: Any, calls: Sequence[tuple[str, Mapping[str, Sequence[str]]]]
) -> Iterator[str]:
    for number, (name, inputs) in enumerate(calls):
        outputs = model.signatures[name](
            **{key: tf.constant(list(texts)) for key, texts in inputs.items()}
        )
        for key, tensor in outputs.items():
            shape = ",".join(map(str, tensor.shape))
            yield f"{number}\t{key}\t{shape}\t{_content(tensor.numpy())}"


def _content(array: np.ndarray) -> str:
    if array.dtype == object:
        return ",".join(base64.b64encode(text).decode() for text in array.ravel())
    return base64.b64encode(array.tobytes()).decode()


def main() -> None:
    """Compares, where TensorFlow for Java is of the version that made the model."""
    if not tf.__version__.startswith(TENSORFLOW):
        print(f"skipped, for it has TensorFlow {TENSORFLOW}, and this is {tf.__version__}")
        return
    print(f"{compare(pathlib.Path(sys.argv[1]), CALLS)} outputs are the same bytes")


if __name__ == "__main__":
    main()
