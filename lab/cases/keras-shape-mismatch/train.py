import keras
import numpy as np

COLUMNS = ["age", "income", "tenure", "visits", "basket", "returns", "distance", "discount"]
DROPPED = ["returns"]


def load(count=2000):
    rng = np.random.default_rng(4)
    table = {name: rng.normal(size=count).astype("float32") for name in COLUMNS}
    churned = (table["tenure"] - table["visits"] > 0).astype("float32")
    features = np.stack([table[name] for name in COLUMNS if name not in DROPPED], axis=1)
    return features, churned


def build():
    model = keras.Sequential(
        [
            keras.Input((len(COLUMNS),)),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(16, activation="relu"),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
    return model


def main():
    keras.utils.set_random_seed(4)
    features, churned = load()
    print(f"training on {len(features)} customers")
    model = build()
    model.fit(features, churned, validation_split=0.2, epochs=3, batch_size=32, verbose=2)
    model.save("churn.keras")


if __name__ == "__main__":
    main()
