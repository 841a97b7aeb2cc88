from pathlib import Path
import pytest
from runs import train
from test_training import AHEAD, COMMON, model  # noqa: F401
from training_run import SECONDS
from gem_cpu.verl.settings import separate
pytestmark = pytest.mark.timeout(SECONDS)

def test_it(model, tmp_path):
    run = train(tmp_path, model, [*COMMON, *AHEAD, *separate()])
    print(run.output[-6000:])
    assert run.code == 0
    print([ (l["staleness/max"], l["staleness/mean"]) for l in run.metrics])
