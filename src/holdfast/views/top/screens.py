"""What is shown above the screen for a while: stacks, a question, help."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Footer, Static

HELP = """\
holdfast top shows one run, live or ended. It only reads.

 s  where every thread stands; training goes on
 c  save a checkpoint now
 p  pause the job, and let it go on
 x  stop it (asks first): it is sent SIGTERM and saves
 q  quit; the run goes on

 Tab         next list, arrows and Page Up/Down scroll
 ! ✗ ✓ ·     warned, went wrong, went well, noted

memory: what is used of the limit, and, where it keeps
growing, the time until it is full
step time: with the share that waits for data

Escape closes this."""
CLOSE: list[BindingType] = [Binding("escape,q", "dismiss", "back", key_display="Esc")]


class Stacks(Screen[None]):
    """Where every thread stands, to be scrolled."""

    BINDINGS: ClassVar[list[BindingType]] = CLOSE
    AUTO_FOCUS = "VerticalScroll"  # so that the arrows scroll
    CSS = "Stacks Static { padding: 0 1; width: auto; } Stacks VerticalScroll { overflow-x: auto; }"

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(Text(self._text, no_wrap=True), id="stacks", markup=False)
        yield Footer()


class Help(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [*CLOSE, Binding("question_mark", "dismiss", show=False)]
    CSS = """
    Help { align: center middle; }
    Help Static { width: 62; height: auto; max-height: 100%; border: solid $accent; padding: 0 1; background: $surface; }
    """

    def compose(self) -> ComposeResult:
        yield Static(HELP, markup=False)


class StopOrNot(ModalScreen[bool]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape,q", "answer(False)", "no"),
    ]
    CSS = """
    StopOrNot { align: center middle; }
    StopOrNot Vertical { width: 60; height: auto; border: heavy $error; padding: 0 1; background: $surface; }
    """

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static("Stop this run?", markup=False)
            yield Static("It is sent SIGTERM, saves where it can, and is not started again.", markup=False)
            yield Static("y: stop it    n: let it go on", markup=False)

    def action_answer(self, stop: bool) -> None:
        self.dismiss(stop)
