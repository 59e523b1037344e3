"""What Kubeflow's driver fingerprints: patterns of the files behind a data path."""

import json
import os

from components.parallel_text_example_gen import component
from pipeline.recipes.sections import DataConfig


def patterns(data_path):
    properties = component.ParallelTextExampleGen(data_path, DataConfig()).exec_properties
    splits = json.loads(properties["input_config"])["splits"]
    return [os.path.join(properties["input_base"], split["pattern"]) for split in splits]


def test_all_files_behind_a_path_are_fingerprinted():
    whole, *readable = patterns("gs://bucket/data")
    assert whole == "gs://bucket/data"
    assert "gs://bucket/data/[!.]*.[tT][sS][vV]" in readable
    assert "gs://bucket/data/[!.]*.fr" in readable
    assert patterns("/x/{SPAN} [1]")[0] == "/x/[{]SPAN} [[]1]"
    assert patterns("gs://bucket/a.en,gs://bucket/a.fr")[1:3] == [
        "gs://bucket/a.en",
        "gs://bucket/a.fr",
    ]
    assert patterns("/x/en/a,/x/fr/a")[1:3] == ["/x/en/a", "/x/fr/a"]
    assert patterns("/x/a.fr")[:2] == ["/x/a.fr", "/x/a.en"]
