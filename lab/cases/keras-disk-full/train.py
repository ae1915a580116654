from pathlib import Path

import keras
import numpy as np

Path("checkpoints").mkdir(exist_ok=True)
CHECKPOINT = "checkpoints/epoch-{epoch:02d}.keras"


def main():
    keras.utils.set_random_seed(13)
    rng = np.random.default_rng(13)
    x = rng.normal(size=(2000, 256)).astype("float32")
    y = x[:, :32] ** 2
    print(f"training on {len(x)} rows")
    model = keras.Sequential(
        [
            keras.Input((256,)),
            keras.layers.Dense(1024, activation="relu"),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(32),
        ]
    )
    model.compile(optimizer="adam", loss="mse")
    checkpoint = keras.callbacks.ModelCheckpoint(CHECKPOINT)
    model.fit(x, y, batch_size=128, epochs=6, callbacks=[checkpoint], verbose=2)
    print("finished")


if __name__ == "__main__":
    main()
