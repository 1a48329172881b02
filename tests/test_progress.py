"""Progress as lines where no bars can be drawn, as bars in terminals, and nothing where nobody watches."""

from __future__ import annotations

import pytest

from bertology import progress
from bertology.progress import ProgressLines, progress_bars
from warm_processes import BERTOLOGY, WarmProcess, run_main


class FakeClock:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_line_names_every_step_that_runs_with_its_time_left() -> None:
    clock = FakeClock()
    lines = ProgressLines(clock)
    assert lines.describe() == ""
    everything, recording = lines.start("everything"), lines.start("recording mini")
    assert lines.describe() == "everything; recording mini"
    clock.now += 20
    everything(10, 1000)
    recording(1200, 3600)
    assert lines.describe() == "everything: 1%; recording mini: 33%, about 40 s left"
    clock.now += 40
    recording(3600, 3600)
    everything(250, 1000)
    assert lines.describe() == "everything: 25%, about 3 min left"
    recording(0, 3600)  # the next pass
    assert lines.describe() == "everything: 25%, about 3 min left; recording mini: 0%"
    everything(1000, 1000)
    recording(0, 0)  # all of it was in the store
    assert lines.describe() == ""


def test_lines_are_printed_while_a_step_runs_and_reports_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from threading import Event

    monkeypatch.setattr(progress, "LINE_SECONDS", 0.02)
    with progress_bars() as start:
        start("fine-tuning")(1, 4)
        Event().wait(0.5)
    printed = capsys.readouterr()
    assert printed.err.splitlines()[0].startswith("fine-tuning: 25%, about") and len(printed.err.splitlines()) > 1
    assert printed.out == ""


def test_short_computations_print_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bars() as start:
        start("recording")(1, 2)
    assert capsys.readouterr().err == ""


def run_with_frequent_lines(line: list[str]) -> None:
    progress.LINE_SECONDS = 0.05
    run_main(line)


def test_a_redirected_command_is_not_silent() -> None:
    options = ("--model", "tiny", "--corpus", "english", "--limit", "300", "--no-store")
    finished = WarmProcess(run_with_frequent_lines, [*BERTOLOGY, "run", "attention/entropy", *options]).wait()
    assert finished.status == 0
    assert any(line.startswith("recording tiny: ") and line.endswith(" left") for line in finished.err.splitlines())


def test_a_terminal_has_bars(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert progress.is_interactive()
    with progress_bars() as start:
        update = start("recording mini")
        update(1, 2)
        update(2, 2)
    assert "recording mini" in capsys.readouterr().err


def test_an_exception_ends_the_display() -> None:
    import threading

    before = set(threading.enumerate())  # threads of other tests may end meanwhile
    with pytest.raises(KeyboardInterrupt), progress_bars() as start:
        start("recording")(1, 2)
        raise KeyboardInterrupt
    assert set(threading.enumerate()) <= before
