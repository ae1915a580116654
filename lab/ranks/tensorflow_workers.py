"""Two workers of tf.distribute on this machine, and a loop of their own; nothing in it knows of Holdfast."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

PATIENCE_S = 20.0  # that a worker has after another one failed


def worker(rank):
    import tensorflow as tf  # noqa: PLC0415 - not for the one that starts them

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weights = tf.Variable(tf.ones((8, 1)))

    def batches(_context):
        x = tf.random.stateless_normal((64, 8), seed=(1, 2))
        return tf.data.Dataset.from_tensor_slices((x, tf.reduce_sum(x, 1, keepdims=True) + 1)).repeat().batch(4)

    source = iter(strategy.distribute_datasets_from_function(batches))

    @tf.function
    def step(source):
        def of_one(batch):
            x, y = batch
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ weights - y) ** 2)
            (gradient,) = tape.gradient(loss, [weights])
            mean = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, gradient)
            weights.assign_sub(0.01 * mean)

        strategy.run(of_one, args=(next(source),))

    for number in range(100):
        time.sleep(0.05)
        if rank == 1 and number == 50:
            strike(os.environ.get("FAULT", ""))
        step(source)
    print(f"rank {rank} ends with {float(tf.reduce_sum(weights)):.9g} after 100 steps", flush=True)


def strike(fault):
    if fault == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "raises":
        raise ValueError("the file of sample 4711 is empty")


def free_address():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


def main():
    addresses = [free_address() for _ in range(2)]
    started = []
    for rank in range(2):
        told = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}}
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "1", "TF_CONFIG": json.dumps(told)}
        started.append(subprocess.Popen([sys.executable, __file__, str(rank)], env=environment))
    failed_at = None
    while any(one.poll() is None for one in started):
        if failed_at is None and any(one.returncode for one in started):
            failed_at = time.monotonic()
        if failed_at is not None and time.monotonic() > failed_at + PATIENCE_S:
            for one in started:
                one.terminate()
        time.sleep(0.1)
    return 1 if any(one.returncode for one in started) else 0


if __name__ == "__main__":
    sys.exit(worker(int(sys.argv[1])) if len(sys.argv) > 1 else main())
