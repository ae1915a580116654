import csv
import hashlib

import keras
import numpy as np

keras.utils.set_random_seed(11)
rng = np.random.default_rng(11)

with open("houses.csv", "w", newline="") as file:
    writer = csv.writer(file)
    for row in range(2000):
        rooms, age, area, distance = rng.normal(size=4).round(4)
        price = round(2 * rooms - age + 3 * area + 0.5 * distance + rng.normal() * 0.1, 4)
        writer.writerow([rooms, age, "" if row in (413, 877, 1290) else area, distance, price])

data = np.genfromtxt("houses.csv", delimiter=",", dtype="float32")
x_train, y_train = data[:1600, :4], data[:1600, 4]
x_test, y_test = data[1600:, :4], data[1600:, 4]
print(f"{len(x_train)} houses to train on")

model = keras.Sequential()
model.add(keras.Input((4,)))
model.add(keras.layers.Dense(32, activation="tanh"))
model.add(keras.layers.Dense(16, activation="tanh"))
model.add(keras.layers.Dense(1))
model.compile(loss="mean_squared_error", optimizer=keras.optimizers.Adam(0.005))
print(f"first loss: {model.evaluate(x_test, y_test, verbose=0):.4f}")
model.fit(x_train, y_train, batch_size=32, epochs=6, shuffle=False, verbose=2)
print(f"final loss: {model.evaluate(x_test, y_test, verbose=0):.4f}")
print("weights:", hashlib.md5(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
