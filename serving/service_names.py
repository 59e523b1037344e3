"""The names of TensorFlow Serving's services, known to gRPC's reflection.

Only the server uses it: it needs the packages `tensorflow-serving-api` and `tensorflow`.
"""

import contextlib
import importlib


def service_names() -> tuple[str, ...]:
    """Returns the full names of PredictionService and ModelService.

    The package's modules of the services were written for an old protobuf. Since protobuf 5 they
    fail where they write into the descriptor, after the line that makes it known. Only that
    descriptor is needed.
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
