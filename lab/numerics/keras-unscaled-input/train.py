import hashlib

import keras
import numpy as np

keras.utils.set_random_seed(19)
rng = np.random.default_rng(19)

n = 2400
income = rng.lognormal(10.5, 0.6, n)
age = rng.uniform(20, 70, n)
loan = rng.lognormal(9, 0.8, n)
score = np.log(income) - 10.5 - 0.7 * (np.log(loan) - 9) + (age - 45) / 50
default = (score + 0.2 * rng.normal(size=n) < 0).astype("float32")
X = np.column_stack([income, age, loan]).astype("float32")

X_train, X_test, y_train, y_test = X[:2000], X[2000:], default[:2000], default[2000:]
print("income from", X_train[:, 0].min(), "to", X_train[:, 0].max())
model = keras.Sequential(
    [
        keras.Input((3,)),
        keras.layers.Dense(16, activation="tanh"),
        keras.layers.Dense(16, activation="tanh"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(loss="binary_crossentropy", optimizer=keras.optimizers.SGD(0.05), metrics=["accuracy"])
history = model.fit(X_train, y_train, validation_data=(X_test, y_test), epochs=10, batch_size=25, verbose=2)
print(f"first loss: {history.history['loss'][0]:.4f}")
print(f"final loss: {history.history['loss'][-1]:.4f}")
print(f"test accuracy: {history.history['val_accuracy'][-1]:.3f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
