"""`tf.function` without growing memory, and what gives memory back.

A function is traced once for each Python value and each shape it is called with, and every trace is kept: pass tensors, and give the shapes that vary
an `input_signature`. `del` inside the function frees nothing, since its Python runs only while it is traced. Nor does
`tf.debugging.set_log_device_placement`, which only prints. Memory goes back when the last reference to the function (and the model) is gone.

Holdfast without this recipe: memory that grows with the steps is told as a leak while it grows, and for a function that is traced
again and again with the function's name and the number of its graphs.
"""

import gc
import os
import weakref

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf


def traces_of(function, calls):
    for arguments in calls:
        function(*arguments)
    return function.experimental_get_tracing_count()


def scaled(x, scale):
    return x * scale


def raised(x):
    return x + 1.0


def main():
    x = tf.zeros([4, 8])
    by_number, by_tensor = tf.function(scaled), tf.function(scaled)
    by_signature = tf.function(raised, input_signature=[tf.TensorSpec([None, 8], tf.float32)])
    told = {
        "traces_with_python_numbers": traces_of(by_number, [(x, 0.1 * i) for i in range(5)]),
        "traces_with_tensors": traces_of(by_tensor, [(x, tf.constant(0.1 * i)) for i in range(5)]),
        "traces_with_a_signature": traces_of(by_signature, [(tf.zeros([i, 8]),) for i in range(1, 6)]),
    }
    graph = weakref.ref(by_signature.get_concrete_function().graph)
    tf.debugging.set_log_device_placement(False)
    gc.collect()
    told["graph_is_kept"] = graph() is not None
    del by_signature
    gc.collect()
    told["graph_is_gone_with_the_function"] = graph() is None
    return told


if __name__ == "__main__":
    print(main())
