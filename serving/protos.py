"""TensorFlow Serving's protocol messages, without the ten seconds that importing TensorFlow takes.

The messages come from the packages `tensorflow-serving-api` and `tensorflow`; nothing is copied
from them. Importing `tensorflow_serving.apis.predict_pb2` in the plain way runs
`tensorflow/__init__.py`, though all it needs are generated files under `tensorflow/core`, which
depend on protobuf alone. So while they are imported here, an empty module stands in for the package
`tensorflow`. It is taken away at once: a later `import tensorflow` runs as ever and finds the same
message classes. Where TensorFlow is already imported, or the files ask for more of it than that,
the plain import is used.
"""

import contextlib
import importlib
import importlib.util
import sys
import threading
import types

_MODULES = (
    "model_pb2",
    "predict_pb2",
    "get_model_metadata_pb2",
    "get_model_status_pb2",
    "prediction_service_pb2_grpc",
    "model_service_pb2_grpc",
)
_lock = threading.Lock()


def _import_all():
    return {name: importlib.import_module(f"tensorflow_serving.apis.{name}") for name in _MODULES}


def load():
    """Returns the modules of `tensorflow_serving.apis` that client and server share, as attributes.

    They are `model_pb2`, `predict_pb2`, `get_model_metadata_pb2`, `get_model_status_pb2`,
    `prediction_service_pb2_grpc` and `model_service_pb2_grpc`, and `types_pb2`, TensorFlow's data
    types.

    Raises:
        ImportError: `tensorflow-serving-api` or `tensorflow` is not installed.
    """
    with _lock:
        stand_in = None
        if "tensorflow" not in sys.modules:
            spec = importlib.util.find_spec("tensorflow")
            if spec is None or not spec.submodule_search_locations:
                raise ImportError(
                    "The package 'tensorflow' is not installed; it holds the messages of TF "
                    "Serving."
                )
            stand_in = types.ModuleType("tensorflow")
            stand_in.__path__ = list(spec.submodule_search_locations)
            stand_in.__spec__ = spec
            sys.modules["tensorflow"] = stand_in
        try:
            modules = _import_all()
        except (ImportError, AttributeError):
            if stand_in is None:
                raise
            modules = None
        finally:
            if stand_in is not None and sys.modules.get("tensorflow") is stand_in:
                del sys.modules["tensorflow"]
        if modules is None:
            modules = _import_all()
        # Imported by predict_pb2 above; taken from the table so that the package itself is not
        # imported.
        modules["types_pb2"] = sys.modules["tensorflow.core.framework.types_pb2"]
        return types.SimpleNamespace(**modules)


def service_names():
    """Returns the full names of PredictionService and ModelService, once their descriptors are
    known to gRPC's reflection.

    The package's modules of the services were written for an old protobuf: since protobuf 5 they
    fail behind the line that makes the descriptor known, where they write into it. Nothing but that
    descriptor is needed of them.
    """
    from google.protobuf import descriptor_pool

    for module in ("prediction_service_pb2", "model_service_pb2"):
        with contextlib.suppress(AttributeError):
            importlib.import_module(f"tensorflow_serving.apis.{module}")
    pool = descriptor_pool.Default()
    services = [
        pool.FindServiceByName(f"tensorflow.serving.{name}")
        for name in ("PredictionService", "ModelService")
    ]
    return tuple(service.full_name for service in services)
