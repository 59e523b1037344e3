"""Paths and addresses."""

import os

from pipeline.readers.files import split_base


def test_split_base_works_for_addresses_too():
    for paths in (
        ["/a/b/x.en", "/a/bc/y.fr"],
        ["gs://b/d/x", "gs://b/d/y"],
        ["gs://one/x", "gs://two/y"],
        ["/x"],
        ["/a/x"],
    ):
        base, names = split_base(paths)
        assert [os.path.join(base, name) for name in names] == paths
