"""A model made small for a small device: pruned, and quantised to eight bits, with its size before and after.

Quantising the weights (`Optimize.DEFAULT`) makes them a quarter. Pruning alone changes no file size: zeros take as much room as other numbers,
until the file is compressed or the runtime skips them; and a pruned model must be trained on for a while. So measure the file as it is shipped, and the error on data, not only the former.

Holdfast without this recipe: it does not change models. `holdfast run` records the memory that training takes; the file's size is
measured here.
"""

import gzip
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
import tensorflow as tf

try:
    from ai_edge_litert.interpreter import Interpreter
except ImportError:
    Interpreter = tf.lite.Interpreter  # goes with a later TensorFlow


def pruned(model, share):
    """The smallest weights of each layer become zero."""
    small = keras.models.clone_model(model)
    small.set_weights(model.get_weights())
    for layer in small.layers:
        kernel = layer.kernel.numpy()
        kernel[np.abs(kernel) < np.quantile(np.abs(kernel), share)] = 0.0
        layer.kernel.assign(kernel)
    return small


def converted(model, quantised):
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if quantised:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    return converter.convert()


def run(content, x):
    """What it gives, and how much memory its tensors take."""
    interpreter = Interpreter(model_content=content)
    given, made = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    interpreter.resize_tensor_input(given["index"], x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(given["index"], x)
    interpreter.invoke()
    sizes = [int(np.prod(one["shape"])) * np.dtype(one["dtype"]).itemsize for one in interpreter.get_tensor_details()]
    return interpreter.get_tensor(made["index"]), sum(sizes)


def main():
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256, "relu"), keras.layers.Dense(10)])
    x = np.random.default_rng(0).normal(size=(32, 64)).astype("float32")
    reference, told = model(x).numpy(), {}
    for name, small, quantised in (
        ("plain", model, False),
        ("quantised", model, True),
        ("pruned", pruned(model, 0.8), False),
        ("pruned and quantised", pruned(model, 0.8), True),
    ):
        content = converted(small, quantised)
        output, held = run(content, x)
        told[name] = {
            "bytes": len(content),
            "compressed_bytes": len(gzip.compress(content)),
            "tensors_bytes": held,
            "error": float(np.abs(output - reference).mean() / np.abs(reference).mean()),
        }
    return told


if __name__ == "__main__":
    print(main())
