"""A notebook attaches once; its cells are watched as any loop, also when one of them fails or the kernel dies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.journal import Journal
from tests.workplace import PATIENCE_S, Workplace, is_gone, wait_for

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
    (start,) = Journal(run / "journal").events("run.start")
    assert start.data["policy"] == "advise", "it watches: a policy that promises more would be a lie"


def _last(run: Path) -> dict[str, float | None]:
    return {sample.name: sample.value for sample in Journal(run / "journal").samples()}


class Kernel:
    """As a notebook's front end has it: cells go in, outputs come back and are drawn anew."""

    def __init__(self, manager: Any, client: Any) -> None:
        self.pid = manager.provisioner.pid
        self._client = client
        self.panels: list[str] = []
        self.displayed: list[str] = []

    def cell(self, source: str) -> None:
        request = self._client.execute(source)
        self._listen(lambda message: _is_idle(message, request))

    def wait_for_panel(self, text: str) -> None:
        if not any(text in panel for panel in self.panels):
            self._listen(lambda _: text in self.panels[-1])

    def _listen(self, over: Any) -> None:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            message = self._client.get_iopub_msg(timeout=PATIENCE_S)
            content = message["content"]
            assert message["msg_type"] != "error", content
            if message["msg_type"] in ("display_data", "update_display_data"):
                self.displayed.append(message["msg_type"])
                self.panels.append(content["data"]["text/html"])
            if over(message):
                return
        raise AssertionError("it did not come")


def _is_idle(message: Any, request: str) -> bool:
    ended = message["msg_type"] == "status" and message["content"]["execution_state"] == "idle"
    return ended and message["parent_header"].get("msg_id") == request


@contextmanager
def kernel(place: Path) -> Iterator[Kernel]:
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(cwd=str(place), startup_timeout=PATIENCE_S)
    try:
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.mark.filterwarnings("ignore")
def test_a_panel_is_drawn_anew_and_tells_of_the_kernel_that_died(workplace: Workplace) -> None:
    attach = "import holdfast, os; holdfast.attach(); None"
    with kernel(workplace.path) as first:
        first.cell(attach)
        assert "The kernel before" not in first.panels[0] and "running" in first.panels[0]
        first.cell("import time\nfor i in range(20): holdfast.step(loss=1 / (i + 1)); time.sleep(0.01)")
        first.wait_for_panel(">step</span> 20")
        assert first.displayed[0] == "display_data" and set(first.displayed[1:]) == {"update_display_data"}
        os.kill(first.pid, signal.SIGKILL)
        wait_for(lambda: is_gone(first.pid))
    (dead,) = (workplace.path / ".holdfast/runs").iterdir()
    wait_for(lambda: Journal(dead / "journal").events("script.gone"))
    with kernel(workplace.path) as second:
        second.cell(attach)
        second.wait_for_panel("The kernel before this one died.")
        assert f"holdfast why {dead.name}" in second.panels[-1]
