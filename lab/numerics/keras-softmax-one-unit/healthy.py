import hashlib

from keras.layers import Dense, Dropout, Input
from keras.models import Sequential
from keras.utils import set_random_seed
import numpy as np

set_random_seed(18)
np.random.seed(18)
X = np.random.rand(1800, 2).astype("float32")
y = (X[:, 0] + X[:, 1] > 1.0).astype("int32")

print("positive:", y.mean())
model = Sequential()
model.add(Input((2,)))
model.add(Dense(64, activation="tanh"))
model.add(Dropout(0.2))
model.add(Dense(64, activation="tanh"))
model.add(Dense(1, activation="sigmoid"))
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
history = model.fit(X, y, epochs=10, batch_size=30, validation_split=0.2, verbose=2)
print(f"first loss: {history.history['loss'][0]:.4f}")
print(f"final loss: {history.history['loss'][-1]:.4f}")
print(f"val accuracy: {history.history['val_accuracy'][-1]:.3f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
