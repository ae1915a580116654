"""The live screen. It reads the journal and asks the run's watcher; nothing of it runs in the watcher or the training process."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.message import Message
from textual.widgets import Footer, Static

from holdfast.views.overview import Overview, RunReader
from holdfast.views.timeline import Moment
from holdfast.views.top import panels
from holdfast.views.top.background import REFRESH_S, Judging, Reading, ask_beside
from holdfast.views.top.panels import UNICODE, Canvas, LookAt, Row, Verdict
from holdfast.views.top.screens import Help, Stacks, StopOrNot

STYLES = {"note": "dim", "warn": "yellow", "bad": "bold red", "done": "green", None: ""}
ENDED = "the run has ended: there is nothing to {}; `holdfast why` tells more"
Draw = Callable[[Canvas], list[Row]]


@dataclass(frozen=True, slots=True)
class Run:
    """A run as the screen needs it; the command line knows how."""

    reader: RunReader
    judge: Callable[[], Verdict]
    ask: Callable[[str], str]  # raises NoControl and Refused
    stacks: Callable[[], str]  # the same
    look_at: LookAt


class Panel(VerticalScroll):
    """Rows that are drawn again when the width changes, and scrolled where there are too many."""

    def __init__(self, title: str, id: str, can_focus: bool = True, fills: bool = False) -> None:
        """`fills`: on a wide screen it has all the height that is left."""
        super().__init__(id=id, can_focus=can_focus)
        self.border_title = title
        self._fills = fills
        self._rows = Static(markup=False)
        self._draw: Draw = lambda canvas: []

    def compose(self) -> ComposeResult:
        yield self._rows

    def show(self, draw: Draw, title: str = "") -> None:
        self._draw = draw
        if title:
            self.border_title = title
        region = self.scrollable_content_region
        height = region.height if self._fills and self.screen.has_class("-wide") else 0
        canvas = Canvas(max(20, region.width - 2), UNICODE, height)
        lines = [Text(panels.cut(row.text, canvas), STYLES[row.weight]) for row in draw(canvas)]
        self._rows.update(Text("\n").join(lines))

    def on_resize(self, event: events.Resize) -> None:
        self.show(self._draw)


class TopApp(App[str]):
    """Ends with a line for the user where the record cannot be read, and with None otherwise."""

    CSS = """
    #head { height: 1; background: $panel; text-style: bold; padding: 0 1; }
    #verdict { height: auto; max-height: 4; padding: 0 1; text-style: bold; }
    #command { display: none; height: 1; padding: 0 1; color: $text-muted; }
    #status { height: auto; max-height: 2; padding: 0 1; }
    Panel { border-top: solid $primary-darken-2; border-title-color: $text; height: auto; scrollbar-size-vertical: 1; }
    Panel:focus { border-top: heavy $accent; }
    Panel > Static { padding: 0 1; height: auto; }
    #left { height: auto; }
    #right { height: 1fr; }
    #ranks { max-height: 11; display: none; }
    #memory { max-height: 12; }
    #moments { height: 1fr; min-height: 3; }
    #processes { max-height: 50%; }
    .-short #memory { max-height: 6; }
    .-short #ranks { max-height: 6; }
    .-short.-narrow #processes { max-height: 4; }
    .-wide #body { layout: horizontal; }
    .-wide #left { width: 1fr; height: 1fr; }
    .-wide #right { width: 1fr; margin-left: 1; }
    .-wide #command { display: block; }
    .-wide #training { height: 1fr; }
    """
    TITLE = "holdfast top"
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = "#moments"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 - Textual's own
    VERTICAL_BREAKPOINTS = [(0, "-short"), (32, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "stacks", "stacks"),
        Binding("c", "ask('checkpoint')", "checkpoint"),
        Binding("p", "pause", "pause/resume"),
        Binding("x", "stop", "stop"),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    class Read(Message):
        def __init__(self, found: Overview, moments: list[Moment]) -> None:
            super().__init__()
            self.found, self.moments = found, moments

    class Judged(Message):
        def __init__(self, verdict: Verdict) -> None:
            super().__init__()
            self.verdict = verdict

    class Answered(Message):
        def __init__(self, what: str, text: str, done: bool) -> None:
            super().__init__()
            self.what, self.text, self.done = what, text, done

    class Unreadable(Message):
        def __init__(self, reason: str) -> None:
            super().__init__()
            self.reason = reason

    def __init__(self, run: Run, refresh_s: float = REFRESH_S, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._run_shown = run
        self._clock = clock
        self._found: Overview | None = None
        self._verdict: Verdict | None = None
        self._waiting: set[str] = set()
        self._lines = {id: Static(id=id, markup=False) for id in ("head", "verdict", "command", "status")}
        self._panels = {
            "progress": Panel("progress", "progress", can_focus=False),
            "ranks": Panel("ranks", "ranks"),
            "memory": Panel("memory", "memory"),
            "training": Panel("training", "training", can_focus=False, fills=True),
            "moments": Panel("what happened, latest first", "moments"),
            "processes": Panel("processes", "processes"),
        }
        self._reading = Reading(
            run.reader,
            lambda found, moments: self.post_message(self.Read(found, moments)),
            lambda reason: self.post_message(self.Unreadable(reason)),
            refresh_s,
        )
        self._judging = Judging(run.judge, lambda verdict: self.post_message(self.Judged(verdict)))

    @property
    def is_shown(self) -> bool:
        """Whether there is all to see that there will be: for whoever takes a picture."""
        return self._found is not None and self._verdict is not None

    def compose(self) -> ComposeResult:
        yield self._lines["head"]
        yield self._lines["verdict"]
        yield self._lines["command"]
        with Container(id="body"):
            with Container(id="left"):
                yield self._panels["progress"]
                yield self._panels["ranks"]
                yield self._panels["memory"]
                yield self._panels["training"]
            with Container(id="right"):
                yield self._panels["moments"]
                yield self._panels["processes"]
        yield self._lines["status"]
        yield Footer()

    def on_mount(self) -> None:
        self._tell("")
        self._lines["verdict"].update("reading the record…")
        self._judging.start()
        self._reading.start()

    def on_unmount(self) -> None:
        self._reading.stop()
        self._judging.stop()

    # -- what comes from beside the screen

    def on_top_app_read(self, message: Read) -> None:
        if self._is_closing:
            return
        found, moments = message.found, message.moments
        self._judging.consider(found, moments)
        if found == self._found and not found.is_live:
            return
        self._found = found
        now = self._clock()
        self._panels["progress"].show(lambda canvas: panels.progress_rows(found, canvas, now))
        self._show_ranks()
        self._panels["memory"].show(lambda canvas: panels.memory_rows(found, canvas))
        self._panels["training"].show(lambda canvas: panels.curve_rows(found, canvas))
        self._panels["moments"].show(lambda canvas: panels.moment_rows(moments[::-1], canvas))
        self._panels["processes"].show(
            lambda canvas: panels.process_rows(found, self._run_shown.look_at, canvas), panels.processes_title(found)
        )
        self._say("command", found.command)
        self._show_verdict()

    def on_top_app_judged(self, message: Judged) -> None:
        self._verdict = message.verdict
        self._show_verdict()
        self._show_ranks()

    def on_top_app_unreadable(self, message: Unreadable) -> None:
        self.exit(message.reason)

    def on_top_app_answered(self, message: Answered) -> None:
        self._waiting.discard(message.what)
        if self._is_closing:
            return
        if message.what == "stacks" and message.done:
            self._tell("")
            self.push_screen(Stacks(message.text))
        else:
            self._tell(f"{message.what}: {message.text}", bad=not message.done)

    def _show_ranks(self) -> None:
        found, verdict = self._found, self._verdict
        if found is None:
            return
        panel = self._panels["ranks"]
        panel.display = bool(found.ranks or (verdict is not None and verdict.ranks))
        panel.show(lambda canvas: panels.rank_rows(found, verdict, canvas))

    def _show_verdict(self) -> None:
        if self._found is not None and not self._is_closing:
            self._say("head", panels.head(self._found, self._verdict, self._clock()))
            rows = panels.verdict_rows(self._found, self._verdict)
            self._lines["verdict"].update(Text("\n").join(Text(row.text, STYLES[row.weight]) for row in rows))

    # -- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Above stacks, help and a question, only their own keys."""
        return action not in ("stacks", "ask", "pause", "stop", "help") or len(self.screen_stack) == 1

    def action_stacks(self) -> None:
        self._ask("stacks", "take stacks of", self._run_shown.stacks)

    def action_ask(self, do: str) -> None:
        words = {"checkpoint": "save", "stop": "stop", "pause": "pause", "resume": "resume"}
        self._ask(do, words[do], lambda: self._run_shown.ask(do))

    def action_pause(self) -> None:
        self.action_ask("resume" if self._found is not None and self._found.outcome == "paused" else "pause")

    def action_stop(self) -> None:
        if self._is_over("stop"):
            return
        self.push_screen(StopOrNot(), lambda stop: self.action_ask("stop") if stop else self._tell("not stopped"))

    def action_help(self) -> None:
        self.push_screen(Help())

    def _ask(self, what: str, words: str, ask: Callable[[], str]) -> None:
        if self._is_over(words):
            return
        if what in self._waiting:
            self._tell(f"{what}: still waiting for the answer")
            return
        self._waiting.add(what)
        self._tell(f"{what}: asked for, waiting for the answer…")
        ask_beside(ask, lambda text, done: self.post_message(self.Answered(what, text, done)))

    def _is_over(self, words: str) -> bool:
        if self._found is None:
            self._tell("the record is still being read")
        elif not self._found.is_live:
            self._tell(ENDED.format(words))
        else:
            return False
        return True

    # -- lines

    @property
    def _is_closing(self) -> bool:
        """What comes from beside the screen may come late."""
        return not self._lines["head"].is_attached

    def _say(self, id: str, text: str) -> None:
        self._lines[id].update(Text(text, no_wrap=True, overflow="ellipsis"))

    def _tell(self, text: str, bad: bool = False) -> None:
        status = self._lines["status"]
        status.display = bool(text)
        status.update(Text(text, STYLES["bad" if bad else None]))
