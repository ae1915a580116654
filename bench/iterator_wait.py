"""How long TensorFlow itself waits when a data iterator is dropped, by the age it has then. No Holdfast in it.

    python -m bench.iterator_wait

Seen with TensorFlow 2.21: most are gone at once; some that are just past 10 ms × 2ⁿ old wait as long again.
"""

from __future__ import annotations

import threading
import time
from typing import Any

AGES_S = [base + 0.004 * number for base in (2.5, 5.05) for number in range(60)]
NOTABLE_S = 0.2


def dropped_at(tf: Any, age_s: float) -> float:
    data = tf.data.Dataset.range(6).map(lambda i: i + 1, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    began = time.perf_counter()
    iterator = iter(data)
    for _ in range(6):
        next(iterator)
    next(iterator, None)
    time.sleep(max(0.0, age_s - (time.perf_counter() - began)))
    dropped = time.perf_counter()
    del iterator
    return time.perf_counter() - dropped


def main() -> None:
    import tensorflow as tf  # noqa: PLC0415

    waits: dict[float, float] = {}
    threads = [threading.Thread(target=lambda age=age: waits.update({age: dropped_at(tf, age)})) for age in AGES_S]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    slow = {age: wait for age, wait in sorted(waits.items()) if wait > NOTABLE_S}
    print(
        f"{len(waits)} iterators of {AGES_S[0]:.1f} to {AGES_S[-1]:.1f} s; {len(slow)} waited more than {NOTABLE_S} s:"
    )
    for age, wait in slow.items():
        print(f"  {age:.3f} s old: {wait:.2f} s")


if __name__ == "__main__":
    main()
