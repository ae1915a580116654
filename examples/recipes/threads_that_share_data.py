"""Threads that prepare data for one training loop, without a race.

`total += 1` and `if not loaded: load()` are several steps each, and another thread comes in between, with or without the GIL. Hand batches over in a
`queue.Queue` with a size (so that the producers wait instead of filling memory), guard what is counted by a lock, and end it with one sentinel
for each producer, so that the consumer knows when all of them are done and an error of theirs is not lost.

Holdfast without this recipe: a loop that waits for a thread that died is told as a hang, with the stacks of all threads and who waits for
whom; `holdfast.data` has such threads already.
"""

import queue
import threading

DONE = object()


def produce(numbers, lock, batches, errors):
    try:
        while True:
            with lock:  # `next` of one generator from two threads raises; so does a shared list that is popped empty
                number = next(numbers, None)
            if number is None:
                return
            batches.put(number * number)
    except Exception as error:  # noqa: BLE001 - raised again in the loop that trains
        errors.append(error)
    finally:
        batches.put(DONE)


def prepared(items, threads=4, ahead=8):
    batches, errors, lock = queue.Queue(maxsize=ahead), [], threading.Lock()
    numbers = iter(items)
    for _ in range(threads):
        threading.Thread(target=produce, args=(numbers, lock, batches, errors), daemon=True).start()
    running = threads
    while running:
        batch = batches.get()
        if batch is DONE:
            running -= 1
        else:
            yield batch
    if errors:
        raise errors[0]


def main():
    seen = list(prepared(range(2000)))
    try:
        list(prepared([1, 2, None.__class__, 4]))
        told = None
    except TypeError as error:
        told = type(error).__name__
    return {"batches": len(seen), "each_once": sorted(seen) == [n * n for n in range(2000)], "error_of_a_thread": told}


if __name__ == "__main__":
    print(main())
