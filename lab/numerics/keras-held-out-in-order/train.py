import hashlib

import keras
import numpy as np

keras.utils.set_random_seed(74)
labels = np.repeat(np.arange(4), 500)
x = (np.random.randn(4, 16)[labels] + 1.5 * np.random.randn(2000, 16)).astype("float32")
print("rows:", len(x))
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(4, "softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
told = model.fit(x, labels, epochs=10, batch_size=40, validation_split=0.25, verbose=0).history
print(f"first loss: {told['loss'][0]:.4f}")
print(f"final loss: {told['loss'][-1]:.4f}")
print(f"best validation accuracy: {max(told['val_accuracy']):.3f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
