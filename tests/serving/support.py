"""Requests for the tiny model, both clients, and waiting for what a server does in its time."""

import asyncio
import time

import tensorflow as tf
from tensorflow_serving.apis import predict_pb2

from serving.client import AsyncClient, Client

# Seconds after which a wait counts as failed; no test measures time.
DEADLINE = 20


def wait_until(condition):
    """Waits, within the deadline, until the condition holds."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def states(server):
    """Returns the states of a server's only model by version."""
    (model,) = server.models.values()
    return {state.version: state.state for state in model.states()}


def request(texts=("a %s",), signature="", model="shouter", version=None, key="source", **filters):
    """Returns a `PredictRequest`."""
    result = predict_pb2.PredictRequest(**filters)
    result.model_spec.name = model
    result.model_spec.signature_name = signature
    if version is not None:
        result.model_spec.version.value = version
    result.inputs[key].CopyFrom(tf.make_tensor_proto(list(texts), tf.string, [len(texts)]))
    return result


def ask_sync(address, *texts, timeouts=None, **options):
    """Returns the texts of the answers of a `Client`; `timeouts` is that of each call."""
    with Client(address, **options) as client:
        return [client.predict(text, timeout=timeouts)[0].text for text in texts]


def ask_async(address, *texts, timeouts=None, **options):
    """As `ask_sync`, by an `AsyncClient`."""

    async def ask():
        async with AsyncClient(address, **options) as client:
            return [(await client.predict(text, timeout=timeouts))[0].text for text in texts]

    return asyncio.run(ask())
