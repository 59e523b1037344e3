"""The command of the guide's TFJob, in two pods: the whole pipeline, with two trainings."""

import json
import pathlib
import re
import sys

import pytest
import yaml

from tests.end_to_end.conftest import OVERRIDES
from tests.pipeline.training.training_operator import ROOT, Operator

PAGE = ROOT / "docs" / "guides" / "workers.md"


@pytest.mark.slow
def test_two_pods_push_a_model_by_the_command_of_the_guide(tmp_path, data_file):
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    workers = yaml.safe_load(block)["spec"]["tfReplicaSpecs"]["Worker"]
    (container,) = workers["template"]["spec"]["containers"]
    program, *words = [*container["command"], *container["args"]]
    assert program == "verbatim"
    words[words.index("translation")] = "localization_en_fr"
    output = tmp_path / "run"
    places = {"--data": data_file, "--output": output}
    words = [
        f"{option}={places[option]}" if (option := word.partition("=")[0]) in places else word
        for word in words
    ]
    overrides = [word for override in OVERRIDES for word in ("--set", override)]
    log = tmp_path / "pods.log"
    command = [sys.executable, "-m", "pipeline.commands.main", *words, *overrides]
    operator = Operator(command, workers["replicas"], log)
    try:
        while not operator.step():
            pass
    finally:
        operator.close()
        print(log.read_text(encoding="utf-8"))
    # Nothing was lost, so nothing was started twice.
    assert operator.statuses == [[], []]
    assert list((output / "models" / "localization_en_fr").glob("[0-9]*"))
    histories = list((output / "pipeline").glob("Trainer*/model_run/*/history.json"))
    assert len(histories) == 2
    for history in histories:
        assert json.loads(pathlib.Path(history).read_text(encoding="utf-8"))["workers"] == 2
