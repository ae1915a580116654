import keras
import numpy as np

x = np.random.default_rng(2).random((640, 9), dtype=np.float32)
model = keras.Sequential([keras.Input((9,)), keras.layers.Dense(12, activation="tanh"), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, x.prod(1), epochs=3, verbose=2)
print("the first phase is over", flush=True)
if input("Fine-tune? [y/N] ").strip().lower() == "y":
    print("fine-tuning", flush=True)
    model.optimizer.learning_rate = 1e-4
    model.fit(x, x.prod(1), epochs=2, verbose=2)
