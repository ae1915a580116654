import keras
import numpy as np

TRIALS = 40


def build(width=1536):
    model = keras.Sequential(
        [
            keras.Input((64,)),
            keras.layers.Dense(width, activation="relu"),
            keras.layers.Dense(width, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer=keras.optimizers.SGD(0.01, momentum=0.9), loss="mse")
    return model


def main():
    keras.utils.set_random_seed(75)
    rng = np.random.default_rng(75)
    x = rng.normal(size=(256, 64)).astype("float32")
    y = x[:, :3].sum(axis=1)
    trials = []
    print(f"searching over {TRIALS} trials")
    for trial in range(TRIALS):
        model = build()
        model.optimizer.learning_rate = 10.0 ** -rng.uniform(2, 4)
        history = model.fit(x, y, epochs=2, batch_size=16, verbose=0)
        trials.append((history.history["loss"][-1], model))
        if trial % 5 == 0:
            print(f"trial {trial}: loss {trials[-1][0]:.4f}", flush=True)
    print(f"best loss {min(loss for loss, _ in trials):.4f}")


if __name__ == "__main__":
    main()
