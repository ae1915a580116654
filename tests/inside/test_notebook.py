"""A notebook attaches once; its cells are watched as any loop, also when one of them fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.journal import Journal
from tests.workplace import Workplace, wait_for

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("torch")

SETUP = """
import torch, holdfast
holdfast.attach(name="notebook")
x, y = torch.randn(640, 20), torch.randint(0, 2, (640,))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=64)
model = torch.nn.Linear(20, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
TRAIN = """
for inputs, labels in loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
"""


@pytest.mark.filterwarnings("ignore")
def test_the_cells_of_a_notebook_are_counted(workplace: Workplace) -> None:
    cells = [SETUP, TRAIN, "undefined_name", TRAIN]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(
        notebook, timeout=200, allow_errors=True, resources={"metadata": {"path": str(workplace.path)}}
    )
    client.execute()
    (run,) = (workplace.path / ".holdfast/runs").iterdir()
    wait_for(lambda: Journal(run / "journal").events("run.end"))
    seen = _last(run)
    assert (seen["train.steps_count"], seen["train.epoch_count"]) == (20, 1)
    assert notebook.cells[2].outputs[0]["ename"] == "NameError"


def _last(run: Path) -> dict[str, float | None]:
    return {sample.name: sample.value for sample in Journal(run / "journal").samples()}
