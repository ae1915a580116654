"""What TensorFlow itself does when a GPU runs out of memory: the facts that the rescue rests on. No Holdfast here.

    python tests/gpu/tensorflow_facts.py [CASE]

Each case is a process of its own with a small logical GPU. Without CASE all of them are run side by side.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
WIDTH, LAYERS, ROWS = 4096, 6, 8192
MIB = 1 << 20


def start(limit_mib: int | None, growth: bool = False):
    import tensorflow as tf

    gpu = tf.config.list_physical_devices("GPU")[0]
    if growth:
        tf.config.experimental.set_memory_growth(gpu, True)
    elif limit_mib:
        tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=limit_mib)])
    return tf


def model_of(keras, jit):
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(WIDTH, activation="relu") for _ in range(LAYERS)]
    model = keras.Sequential([keras.Input((WIDTH,)), *layers, keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.SGD(1e-4, momentum=0.9), loss="mse", jit_compile=jit)
    return model


def batch_of(tf, rows):
    x = tf.random.stateless_normal((rows, WIDTH), (1, 2))
    return x, tf.reduce_mean(x, axis=1, keepdims=True)


def memory(tf):
    info = tf.config.experimental.get_memory_info("GPU:0")
    return f"current {info['current'] / MIB:.0f} peak {info['peak'] / MIB:.0f}"


def digest(tf, variables):
    return [float(tf.reduce_sum(tf.cast(v, tf.float64))) for v in variables][:4]


def attempt(tf, name, run):
    began = time.monotonic()
    try:
        run()
        print(f"  {name}: fine in {time.monotonic() - began:.2f} s; {memory(tf)}", flush=True)
        return True
    except Exception as error:  # noqa: BLE001 - what it is, is the fact
        words = str(error).replace("\n", " | ")
        took = time.monotonic() - began
        print(
            f"  {name}: {type(error).__name__} after {took:.2f} s; {memory(tf)}: {words[:700]} …… {words[-300:]}",
            flush=True,
        )
        return False


def whole_step(limit, jit, held, growth=False, then_rows=512):
    """One step that does not fit; with `held`, a second reference to every variable's buffer is held meanwhile."""
    tf = start(limit, growth)
    import keras

    model = model_of(keras, jit)
    model.optimizer.build(model.trainable_variables)
    small, big = batch_of(tf, then_rows), batch_of(tf, ROWS)
    model.make_train_function()
    print("  jit:", model.jit_compile, memory(tf), flush=True)
    variables = [v.value for v in [*model.variables, *model.optimizer.variables]]
    before = digest(tf, variables)
    references = [v.read_value() for v in variables] if held else []
    attempt(tf, "whole", lambda: model.train_function((big,)))
    del references
    print("  unchanged:", before == digest(tf, variables), memory(tf), flush=True)
    for _ in range(3):
        attempt(tf, f"{then_rows} rows", lambda: float(model.train_function((small,))["loss"]))
    if held:
        references = [v.read_value() for v in variables]
        attempt(tf, "whole again", lambda: model.train_function((big,)))
        del references
        attempt(tf, "small again", lambda: float(model.train_function((small,))["loss"]))


def pieces(limit, jit, k):
    """Gradients returned by a compiled function that assigns nothing, added up outside of it; beside a bare step."""
    tf = start(limit)
    import keras

    model = model_of(keras, jit)
    model.optimizer.build(model.trainable_variables)
    x, y = batch_of(tf, ROWS)
    piece = ROWS // k

    @tf.function(jit_compile=jit)
    def gradient(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        return loss, tape.gradient(loss, model.trainable_variables)

    sums = [tf.Variable(tf.zeros(v.shape)) for v in model.trainable_variables]
    print("  before:", memory(tf), flush=True)

    def run():
        for begin in range(0, ROWS, piece):
            _, grads = gradient(x[begin : begin + piece], y[begin : begin + piece])
            for total, grad in zip(sums, grads, strict=True):
                total.assign_add(grad)
            del grads, grad
        model.optimizer.apply(sums, model.trainable_variables)

    tf.config.experimental.reset_memory_stats("GPU:0")
    attempt(tf, f"in {k} pieces, first", run)
    tf.config.experimental.reset_memory_stats("GPU:0")
    attempt(tf, f"in {k} pieces, second", run)
    del sums[:]
    model.make_train_function()
    tf.config.experimental.reset_memory_stats("GPU:0")
    attempt(tf, f"bare step of {piece} rows", lambda: model.train_function(((x[:piece], y[:piece]),)))
    tf.config.experimental.reset_memory_stats("GPU:0")
    attempt(tf, f"bare step of {piece} rows, again", lambda: model.train_function(((x[:piece], y[:piece]),)))
    if limit > 10000:
        tf.config.experimental.reset_memory_stats("GPU:0")
        attempt(tf, "bare whole step", lambda: model.train_function(((x, y),)))


def pieces_in_place(limit, jit, k):
    """Gradients added to sums within the compiled function."""
    tf = start(limit)
    import keras

    model = model_of(keras, jit)
    model.optimizer.build(model.trainable_variables)
    x, y = batch_of(tf, ROWS)
    piece = ROWS // k
    sums = [tf.Variable(tf.zeros(v.shape)) for v in model.trainable_variables]

    @tf.function(jit_compile=jit)
    def add(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        for total, grad in zip(sums, tape.gradient(loss, model.trainable_variables), strict=True):
            total.assign_add(grad)
        return loss

    def run():
        for begin in range(0, ROWS, piece):
            add(x[begin : begin + piece], y[begin : begin + piece])

    def update():
        model.optimizer.apply([total.read_value() for total in sums], model.trainable_variables)

    print("  before:", memory(tf), flush=True)
    for turn in ("first", "second"):
        tf.config.experimental.reset_memory_stats("GPU:0")
        attempt(tf, f"in {k} pieces, {turn}", run)
        tf.config.experimental.reset_memory_stats("GPU:0")
        attempt(tf, f"update, {turn}", update)


def tape(limit):
    """A tf.function around a GradientTape, not compiled by XLA."""
    tf = start(limit)
    import keras

    model = model_of(keras, False)
    model.optimizer.build(model.trainable_variables)
    small, big = batch_of(tf, 512), batch_of(tf, ROWS)

    @tf.function(reduce_retracing=True)
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        model.optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    before = digest(tf, model.trainable_variables)
    attempt(tf, "whole", lambda: float(step(*big)))
    print("  unchanged:", before == digest(tf, model.trainable_variables), int(model.optimizer.iterations))
    attempt(tf, "small", lambda: float(step(*small)))


def capped(growth):
    """A limit put into the options as the context makes them: beside memory growth, and without."""
    tf = start(None, growth)
    from tensorflow.python.eager.context import Context

    compute = Context._compute_gpu_options

    def with_limit(self):
        options = compute(self)
        if not options.experimental.virtual_devices:
            options.experimental.virtual_devices.add(memory_limit_mb=[1200])
        return options

    Context._compute_gpu_options = with_limit
    print("  logical:", tf.config.list_logical_devices("GPU"), flush=True)
    attempt(tf, "1000 MiB", lambda: tf.zeros((250, MIB)).shape)
    attempt(tf, "1300 MiB", lambda: tf.zeros((325, MIB)).shape)
    os.system("nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader")


def larger_than_the_card():
    """Ten times what the card has, without a limit."""
    tf = start(None)
    import keras

    model = model_of(keras, "auto")
    data = tf.data.Dataset.from_tensors((tf.zeros((1, WIDTH)), tf.zeros((1, 1)))).repeat().batch(1)
    del data
    with tf.device("CPU"):
        x, y = tf.zeros((1_200_000, WIDTH)), tf.zeros((1_200_000, 1))
    attempt(tf, "fit", lambda: model.fit(x, y, batch_size=1_200_000, verbose=0))


CASES = {
    "xla-bare": lambda: whole_step(1500, "auto", False),
    "xla-held": lambda: whole_step(1500, "auto", True),
    "xla-held-1300": lambda: whole_step(1300, "auto", True),
    "xla-fits-held": lambda: whole_step(6000, "auto", True),
    "no-xla": lambda: whole_step(1500, False, False),
    "xla-pieces": lambda: pieces(20000, True, 8),
    "no-xla-pieces": lambda: pieces(20000, False, 8),
    "xla-pieces-1300": lambda: pieces(1300, True, 8),
    "xla-in-place": lambda: pieces_in_place(20000, True, 8),
    "no-xla-in-place": lambda: pieces_in_place(20000, False, 8),
    "tape": lambda: tape(1500),
    "capped": lambda: capped(False),
    "capped-growth": lambda: capped(True),
}


def main() -> None:
    if len(sys.argv) > 1:
        {**CASES, "card": larger_than_the_card}[sys.argv[1]]()
        print("  end reached", flush=True)
        return
    everything = {
        name: subprocess.Popen(
            ["timeout", "-k", "5", "150", sys.executable, __file__, name],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in CASES
    }
    for name, process in everything.items():
        if name == "card":
            continue
        out, err = process.communicate()
        print(f"{name}: exit {process.returncode}\n{out}", flush=True)
        if process.returncode:
            print("  stderr: " + err[-700:].replace("\n", "\n    "), flush=True)


if __name__ == "__main__":
    main()
