import ctypes

import keras
import numpy as np

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]

HEADER_BYTES = 8
SIDE = 16


class NativeBatches(keras.utils.PyDataset):
    """Batches written into buffers of our own, as the C decoder does: a header, then the pixels."""

    def __init__(self, steps=40, batch=32, **options):
        super().__init__(**options)
        self.steps, self.batch = steps, batch
        self.rng = np.random.default_rng(8)

    def __len__(self):
        return self.steps

    def __getitem__(self, index):
        count = self.batch * SIDE * SIDE
        pixels = libc.malloc(HEADER_BYTES + count * 4) + HEADER_BYTES
        ctypes.cast(pixels - HEADER_BYTES, ctypes.POINTER(ctypes.c_uint64))[0] = count * 4
        view = np.ctypeslib.as_array(ctypes.cast(pixels, ctypes.POINTER(ctypes.c_float)), (count,))
        view[:] = self.rng.random(count, dtype=np.float32)
        images = view.reshape(self.batch, SIDE, SIDE, 1).copy()
        libc.free(pixels - HEADER_BYTES)
        return images, (images.mean(axis=(1, 2, 3)) > 0.5).astype("float32")


def main():
    keras.utils.set_random_seed(8)
    batches = NativeBatches()
    print(f"training on {len(batches)} batches")
    model = keras.Sequential(
        [
            keras.Input((SIDE, SIDE, 1)),
            keras.layers.Conv2D(8, 3, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(optimizer="adam", loss="binary_crossentropy")
    model.fit(batches, epochs=2, shuffle=False, verbose=2)


if __name__ == "__main__":
    main()
