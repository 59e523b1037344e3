"""What a request of a client to a bucket does, by its method and path."""

import pytest

from tests.object_storage import google_proxy, run_on_buckets


@pytest.mark.parametrize(
    "method, path, kind",
    [
        ("GET", "/b/folder%2Ffile", "read"),
        ("GET", "/download/storage/v1/b/b/o/file?alt=media", "read"),
        ("GET", "/storage/v1/b/b/o/file?fields=size", "look"),
        ("GET", "/storage/v1/b/b/o?prefix=folder%2F", "list"),
        ("GET", "/storage/v1/b/b", "look"),
        ("POST", "/upload/storage/v1/b/b/o?uploadType=resumable&name=file", "write"),
        ("PUT", "/upload/resumable/1", "write"),
        ("POST", "/storage/v1/b/b/o/file/rewriteTo/b/b/o/other", "copy"),
        ("DELETE", "/storage/v1/b/b/o/file", "delete"),
        ("POST", "/batch/storage/v1", "batch"),
    ],
)
def test_kinds(method, path, kind):
    assert google_proxy.kind_of(method, path) == kind


def test_requests_that_grow_with_the_examples_are_named():
    few = {"Trainer": {"read": 10}, "Vocabulary": {"read": 40, "list": 5}}
    more = {"Trainer": {"read": 12}, "Vocabulary": {"read": 80, "list": 5}}
    (sentence,) = run_on_buckets.too_many({"once": few, "twice": more})
    assert sentence == "Vocabulary: 45 requests, and 85 with 2 times as many examples."
