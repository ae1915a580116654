import keras
import numpy as np


class Prepared(keras.utils.PyDataset):
    def __init__(self):
        super().__init__()
        self.kept = {}

    def __len__(self):
        return 300

    def __getitem__(self, index):
        if index not in self.kept:
            self.kept[index] = np.random.rand(64, 4096).astype("float32")
        return self.kept[index], np.zeros((64, 1), "float32")


def main():
    data = Prepared()
    model = keras.Sequential([keras.layers.Dense(16), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(data, epochs=4, verbose=2, shuffle=False)
    print(f"{len(data.kept)} batches are kept")


if __name__ == "__main__":
    main()
