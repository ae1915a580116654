"""More models for `gpu_tensorflow.py`, as people write them: each makes, compiles and trains one, and gives it back.

`steps` is the callback that notes what was begun and ended; sizes are `tiny` where a CPU stands for the card.
"""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

CROSS_ENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def images(random, rows, side, classes):
    return random.normal(size=(rows, side, side, 3)).astype("f"), random.integers(0, classes, rows)


def resnet(random, steps, tiny):
    """A stock backbone with batch normalisation, trained from nothing on a tf.data pipeline."""
    rows, side = (4, 32) if tiny else (512, 128)
    backbone = keras.applications.ResNet50(include_top=False, weights=None, pooling="avg", input_shape=(side, side, 3))
    model = keras.Sequential([layers.Input((side, side, 3)), layers.Rescaling(0.5), backbone, layers.Dense(10)])
    model.compile(keras.optimizers.SGD(1e-3, momentum=0.9), CROSS_ENTROPY, metrics=["accuracy"])
    x, y = images(random, rows * 2, side, 10)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(rows).prefetch(1)
    model.fit(data, epochs=2, verbose=0, callbacks=[steps])
    return model


def unet(random, steps, tiny):
    rows, side, width = (4, 16, 4) if tiny else (256, 128, 32)

    def block(hidden, filters):
        for _ in range(2):
            hidden = layers.Conv2D(filters, 3, padding="same", activation="relu")(hidden)
        return hidden

    inputs = layers.Input((side, side, 3))
    first = block(inputs, width)
    second = block(layers.MaxPooling2D()(first), 2 * width)
    third = block(layers.MaxPooling2D()(second), 4 * width)
    up = block(layers.Concatenate()([layers.Conv2DTranspose(2 * width, 2, strides=2)(third), second]), 2 * width)
    up = block(layers.Concatenate()([layers.Conv2DTranspose(width, 2, strides=2)(up), first]), width)
    model = keras.Model(inputs, layers.Conv2D(1, 1, activation="sigmoid")(up))
    model.compile(keras.optimizers.SGD(1e-3, momentum=0.9), "binary_crossentropy", metrics=[keras.metrics.BinaryIoU()])
    x = random.normal(size=(rows * 2, side, side, 3)).astype("f")
    y = (x[..., :1] > 0).astype("f")
    model.fit(x, y, batch_size=rows, epochs=2, shuffle=False, verbose=0, callbacks=[steps])
    return model


class Gan(keras.Model):
    """Two optimizers and two updates a step, as in Keras's own example."""

    def __init__(self, generator, discriminator, latent):
        super().__init__()
        self.generator, self.discriminator, self.latent = generator, discriminator, latent
        self.seeds = keras.random.SeedGenerator(5)

    def compile(self, g_optimizer, d_optimizer, loss_fn):
        super().compile()
        self.g_optimizer, self.d_optimizer, self.loss_fn = g_optimizer, d_optimizer, loss_fn

    def train_step(self, real):
        rows = tf.shape(real)[0]
        noise = keras.random.normal((rows, self.latent), seed=self.seeds)
        fake = self.generator(noise)
        both, labels = tf.concat([fake, real], 0), tf.concat([tf.ones((rows, 1)), tf.zeros((rows, 1))], 0)
        with tf.GradientTape() as tape:
            d_loss = self.loss_fn(labels, self.discriminator(both))
        grads = tape.gradient(d_loss, self.discriminator.trainable_weights)
        self.d_optimizer.apply_gradients(zip(grads, self.discriminator.trainable_weights))
        noise = keras.random.normal((rows, self.latent), seed=self.seeds)
        with tf.GradientTape() as tape:
            g_loss = self.loss_fn(tf.zeros((rows, 1)), self.discriminator(self.generator(noise)))
        grads = tape.gradient(g_loss, self.generator.trainable_weights)
        self.g_optimizer.apply_gradients(zip(grads, self.generator.trainable_weights))
        return {"d_loss": d_loss, "g_loss": g_loss}


def gan(random, steps, tiny):
    rows, width, wide = (8, 8, 16) if tiny else (8192, 256, 4096)
    generator = keras.Sequential(
        [layers.Input((64,)), layers.Dense(wide, "relu"), layers.Dense(wide, "relu"), layers.Dense(width)]
    )
    discriminator = keras.Sequential(
        [layers.Input((width,)), layers.Dense(wide, "relu"), layers.Dense(wide, "relu"), layers.Dense(1)]
    )
    model = Gan(generator, discriminator, 64)
    model.compile(
        keras.optimizers.SGD(1e-3), keras.optimizers.SGD(1e-3), keras.losses.BinaryCrossentropy(from_logits=True)
    )
    real = random.normal(size=(rows * 2, width)).astype("f")
    model.fit(tf.data.Dataset.from_tensor_slices(real).batch(rows), epochs=2, verbose=0, callbacks=[steps])
    return model


class Sampling(layers.Layer):
    def __init__(self):
        super().__init__()
        self.seeds = keras.random.SeedGenerator(7)

    def call(self, pair):
        mean, log_var = pair
        self.add_loss(-0.5 * ops.mean(1 + log_var - ops.square(mean) - ops.exp(log_var)))
        return mean + ops.exp(0.5 * log_var) * keras.random.normal(ops.shape(mean), seed=self.seeds)


def autoencoder(random, steps, tiny):
    """A variational one: noise in the step, and a loss that a layer adds."""
    rows, width, wide = (8, 16, 16) if tiny else (8192, 784, 4096)
    inputs = layers.Input((width,))
    hidden = layers.Dense(wide, "relu")(layers.Dense(wide, "relu")(inputs))
    sampled = Sampling()((layers.Dense(32)(hidden), layers.Dense(32, kernel_initializer="zeros")(hidden)))
    hidden = layers.Dense(wide, "relu")(layers.Dense(wide, "relu")(sampled))
    model = keras.Model(inputs, layers.Dense(width)(hidden))
    model.compile(keras.optimizers.SGD(1e-3, momentum=0.9), "mse")
    x = random.normal(size=(rows * 2, width)).astype("f")
    model.fit(x, x, batch_size=rows, epochs=2, shuffle=False, verbose=0, callbacks=[steps])
    return model


def text(random, steps, tiny):
    """Padded sentences, with a mask through two recurrent layers."""
    words, rows, length, width = (100, 8, 8, 8) if tiny else (20_000, 1024, 256, 128)
    inputs = layers.Input((length,), dtype="int32")
    hidden = layers.Embedding(words, width, mask_zero=True)(inputs)
    hidden = layers.Bidirectional(layers.LSTM(width, return_sequences=True))(hidden)
    hidden = layers.Dropout(0.0)(layers.Bidirectional(layers.GRU(width))(hidden))
    model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(hidden))
    model.compile(keras.optimizers.SGD(1e-2), "binary_crossentropy", metrics=["accuracy", "auc"])
    x = random.integers(1, words, (rows * 2, length))
    for row, end in zip(x, random.integers(length // 4, length, rows * 2)):
        row[end:] = 0
    model.fit(x, x[:, 0] % 2, batch_size=rows, epochs=2, shuffle=False, verbose=0, callbacks=[steps])
    return model


def several_outputs(random, steps, tiny):
    """Weights of samples and classes, losses of different weight, callbacks that people use."""
    rows, wide = (8, 16) if tiny else (8192, 4096)
    inputs = layers.Input((64,))
    hidden = inputs
    for _ in range(5):
        hidden = layers.Dense(wide, activation="gelu", kernel_regularizer="l2")(hidden)
    model = keras.Model(
        inputs, {"kind": layers.Dense(5, name="kind")(hidden), "size": layers.Dense(1, name="size")(hidden)}
    )
    model.compile(
        keras.optimizers.SGD(1e-4, momentum=0.9, clipnorm=1.0),
        {"kind": CROSS_ENTROPY, "size": "mae"},
        loss_weights={"kind": 1.0, "size": 0.3},
        metrics={"kind": ["accuracy"], "size": ["mse"]},
    )
    x = random.normal(size=(rows * 2, 64)).astype("f")
    y = {"kind": (x[:, 0] > 0).astype("int64") * 3, "size": x[:, :1]}
    weights = random.uniform(0.5, 2, rows * 2).astype("f")
    data = tf.data.Dataset.from_tensor_slices((x, y, {"kind": weights, "size": weights})).batch(rows)
    stops = [keras.callbacks.EarlyStopping("loss", patience=5), keras.callbacks.ReduceLROnPlateau("loss")]
    model.fit(data, epochs=2, verbose=0, callbacks=[steps, *stops])
    return model


class Contrastive(keras.Model):
    """Its loss is over all pairs of the batch: what is cut here is another loss, so it may not be cut."""

    def train_step(self, x):
        with tf.GradientTape() as tape:
            one, two = self(x, training=True), self(x + 0.01, training=True)
            logits = tf.matmul(one, two, transpose_b=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tf.range(tf.shape(x)[0]), logits))
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return {"loss": loss}


def contrastive(random, steps, tiny):
    rows, wide = (8, 16) if tiny else (8192, 4096)
    inputs = layers.Input((64,))
    hidden = inputs
    for _ in range(4):
        hidden = layers.Dense(wide, activation="relu")(hidden)
    model = Contrastive(inputs, layers.UnitNormalization()(layers.Dense(64)(hidden)))
    model.compile(keras.optimizers.SGD(1e-3))
    x = random.normal(size=(rows * 2, 64)).astype("f")
    model.fit(tf.data.Dataset.from_tensor_slices(x).batch(rows), epochs=2, verbose=0, callbacks=[steps])
    return model


MODELS = {
    "resnet": resnet,
    "unet": unet,
    "gan": gan,
    "autoencoder": autoencoder,
    "text": text,
    "several-outputs": several_outputs,
    "contrastive": contrastive,
}


def trained(name, seed, steps, tiny):
    return MODELS[name](np.random.default_rng(seed), steps, tiny)
