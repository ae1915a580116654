"""A process of 50 threads, each some frames deep; the main one counts its steps, or waits for a lock with the others.

    fifty_threads.py busy|still DEPTH FILE

A busy one writes to FILE how long each answer took: by the clock, and in processor time of the thread that gave it, since others
want the processors, too. While it answers it has the GIL, so no other thread runs Python.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time

THREADS = 50
gate = threading.Lock()
over = threading.Event()
answers = []


def deep(depth, then):
    if depth:
        deep(depth - 1, then)
    else:
        then()


def wait():
    gate.acquire()


def work(path):
    while not over.is_set():
        sum(range(100))
    with open(path, "w") as out:
        json.dump(answers, out)


def timed(answer):
    def answering(*arguments):
        began, used = time.perf_counter(), time.thread_time()
        answer(*arguments)
        answers.append((time.perf_counter() - began, time.thread_time() - used))

    return answering


def time_the_answers():
    """Holdfast has taken a real-time signal; nobody else has one here."""
    for number in range(signal.SIGRTMIN, signal.SIGRTMAX + 1):
        if callable(handler := signal.getsignal(number)):
            signal.signal(number, timed(handler))


def main(kind, depth, path):
    gate.acquire()
    time_the_answers()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    for _ in range(THREADS - 1):
        threading.Thread(target=deep, args=(depth, wait), daemon=True).start()
    print("ready", flush=True)
    deep(depth, wait if kind == "still" else lambda: work(path))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
