import json
import threading
import time

import keras
import numpy as np


class RunLog(keras.callbacks.Callback):
    """Rows go into a buffer; a thread writes them out now and then."""

    def __init__(self, path):
        super().__init__()
        self.path = path
        self.rows = []
        self.buffer_lock = threading.Lock()
        self.file_lock = threading.Lock()
        self.due = threading.Event()
        self.writer = threading.Thread(target=self.write_out, daemon=True)
        self.writer.start()

    def write_out(self):
        while True:
            self.due.wait()
            self.due.clear()
            with self.buffer_lock:
                time.sleep(0.3)  # compress
                with self.file_lock:  # one writer
                    with open(self.path, "a") as out:
                        out.writelines(json.dumps(row) + "\n" for row in self.rows)
                self.rows.clear()

    def on_epoch_end(self, epoch, logs=None):
        row = {"epoch": epoch, **{key: float(value) for key, value in logs.items()}}
        if epoch < 3:
            self.rows.append(row)
            print(f"epoch {epoch + 1} logged")
            return
        self.due.set()
        with self.buffer_lock:
            time.sleep(0.1)  # rotate the file
            with self.file_lock:
                self.rows.append(row)


def main():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(640, 12)).astype("float32")
    y = (x[:, :3].sum(1) > 0).astype("float32")
    model = keras.Sequential([keras.Input((12,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(1, "sigmoid")])
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    model.fit(x, y, batch_size=32, epochs=6, verbose=2, callbacks=[RunLog("rows.jsonl")])


if __name__ == "__main__":
    main()
