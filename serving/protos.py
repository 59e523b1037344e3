"""TensorFlow Serving's protocol messages, without the ten seconds that importing TensorFlow takes.

The messages come from the packages `tensorflow-serving-api` and `tensorflow`; nothing is copied
from them. Importing `tensorflow_serving.apis.predict_pb2` in the plain way runs
`tensorflow/__init__.py`. All it needs, however, are generated files under `tensorflow/core`, which
depend on protobuf alone. So an empty module stands in for the package `tensorflow` while they are
imported here. It is removed at once: a later `import tensorflow` works as usual and finds the same
message classes. The plain import is used where TensorFlow is already imported, or where the files
need more of it than that.
"""

import contextlib
import dataclasses
import importlib
import importlib.util
import sys
import threading
import types


@dataclasses.dataclass(frozen=True)
class Protos:
    """The modules of messages and stubs that client and server share.

    All are of `tensorflow_serving.apis`, but for `types_pb2`, TensorFlow's data types.
    """

    model_pb2: types.ModuleType
    predict_pb2: types.ModuleType
    get_model_metadata_pb2: types.ModuleType
    get_model_status_pb2: types.ModuleType
    prediction_service_pb2_grpc: types.ModuleType
    model_service_pb2_grpc: types.ModuleType
    types_pb2: types.ModuleType


_MODULES = [field.name for field in dataclasses.fields(Protos) if field.name != "types_pb2"]
_lock = threading.Lock()


def _import_all() -> dict[str, types.ModuleType]:
    return {name: importlib.import_module(f"tensorflow_serving.apis.{name}") for name in _MODULES}


def load() -> Protos:
    """Imports the messages.

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
            modules = {}
        finally:
            if stand_in is not None and sys.modules.get("tensorflow") is stand_in:
                del sys.modules["tensorflow"]
        modules = modules or _import_all()
        # predict_pb2 above imported it. Taken from the table, it does not import the package.
        return Protos(**modules, types_pb2=sys.modules["tensorflow.core.framework.types_pb2"])


def service_names() -> tuple[str, ...]:
    """Returns the full names of PredictionService and ModelService, known to gRPC's reflection.

    The package's modules of the services were written for an old protobuf. Since protobuf 5 they
    fail where they write into the descriptor, after the line that makes it known. Nothing but that
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
