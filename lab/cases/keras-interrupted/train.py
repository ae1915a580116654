import keras
import numpy as np

STEPS = 48


def sine_windows(count=8000):
    rng = np.random.default_rng(5)
    phase = rng.uniform(0, 2 * np.pi, (count, 1))
    speed = rng.uniform(0.1, 0.5, (count, 1))
    wave = np.sin(phase + speed * np.arange(STEPS + 1)).astype("float32")
    return wave[:, :-1, None], wave[:, -1]


def main():
    keras.utils.set_random_seed(5)
    x, y = sine_windows()
    print(f"training on {len(x)} windows")
    model = keras.Sequential(
        [
            keras.Input((STEPS, 1)),
            keras.layers.Conv1D(32, 5, activation="relu"),
            keras.layers.Conv1D(32, 5, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer="adam", loss="mse")
    model.fit(x, y, batch_size=64, epochs=6, verbose=2)
    model.save("forecast.keras")


if __name__ == "__main__":
    main()
