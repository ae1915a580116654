"""TensorFlow loops as people write them, to be killed and gone on with; they know nothing of Holdfast. `resume_tensorflow.py KIND`"""

import hashlib
import json
import os
import random
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
import tensorflow as tf

SAMPLES, BATCH, EPOCHS = 640, 16, int(os.environ.get("EPOCHS", "8"))
PAUSE_S = float(os.environ.get("STEP_PAUSE_S", "0.006"))
keras.utils.set_random_seed(4)
tf.config.experimental.enable_op_determinism()
x = np.random.normal(size=(SAMPLES, 8)).astype("float32")
y = (x[:, :1] * 2 + 1).astype("float32")


def paced():
    if not os.path.exists("training"):
        open("training", "w").close()
    time.sleep(PAUSE_S)


def network(width=int(os.environ.get("WIDTH", "32"))):
    """Built with the first batch."""
    return keras.Sequential(
        [
            keras.layers.Dense(width, activation="relu"),
            keras.layers.Dropout(0.2),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(1),
        ]
    )


def batches():
    return tf.data.Dataset.from_tensor_slices((x, y)).shuffle(SAMPLES).batch(BATCH)


def eager():
    """Everything by hand: a tape, a schedule, losses printed now and then."""
    data = batches()
    model = network()
    optimizer = keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(1e-2, 40, 0.9))
    losses = []
    for epoch in range(EPOCHS):
        for step, (inputs, targets) in enumerate(data):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(inputs, training=True) - targets))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            paced()
            if step % 10 == 0:
                losses.append((epoch, step, float(loss)))
    return [model], losses


def compiled():
    """The loop of TensorFlow's guide: compiled steps, metrics, a validation after each epoch."""
    train, held_out = batches(), tf.data.Dataset.from_tensor_slices((x[:96], y[:96])).batch(32)
    model = network()
    optimizer = keras.optimizers.RMSprop(keras.optimizers.schedules.CosineDecay(1e-2, 200))
    loss_of = keras.losses.MeanSquaredError()
    seen, error = keras.metrics.Mean(), keras.metrics.MeanAbsoluteError()

    @tf.function
    def train_step(inputs, targets):
        with tf.GradientTape() as tape:
            loss = loss_of(targets, model(inputs, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        seen.update_state(loss)
        return loss

    @tf.function
    def test_step(inputs, targets):
        error.update_state(targets, model(inputs, training=False))

    history, total = [], 0.0
    for epoch in range(EPOCHS):
        seen.reset_state()
        for inputs, targets in train:
            total += float(train_step(inputs, targets))
            paced()
        error.reset_state()
        for inputs, targets in held_out:
            test_step(inputs, targets)
        history.append((epoch, float(seen.result()), float(error.result())))
    return [model], [history, total]


def gan():
    """Two models, two optimizers; noise is drawn eagerly and by a generator of its own."""
    data = tf.data.Dataset.from_tensor_slices(x).shuffle(100, seed=3).batch(BATCH, drop_remainder=True)
    generator = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(8)])
    critic = keras.Sequential([keras.layers.Dense(32), keras.layers.LeakyReLU(), keras.layers.Dense(1)])
    generator_optimizer = keras.optimizers.Adam(2e-3, beta_1=0.5)
    critic_optimizer = keras.optimizers.Adam(2e-3, beta_1=0.5)
    cross_entropy = keras.losses.BinaryCrossentropy(from_logits=True)
    noises = tf.random.Generator.from_seed(9)
    fixed = tf.random.normal([4, 4])

    @tf.function
    def train_step(real, first):
        noise = first + noises.normal([BATCH, 4])
        with tf.GradientTape() as generator_tape, tf.GradientTape() as critic_tape:
            fake = generator(noise, training=True)
            said_real, said_fake = critic(real, training=True), critic(fake, training=True)
            generator_loss = cross_entropy(tf.ones_like(said_fake), said_fake)
            critic_loss = cross_entropy(tf.ones_like(said_real), said_real)
            critic_loss += cross_entropy(tf.zeros_like(said_fake), said_fake)
        of_generator = generator_tape.gradient(generator_loss, generator.trainable_variables)
        of_critic = critic_tape.gradient(critic_loss, critic.trainable_variables)
        generator_optimizer.apply_gradients(zip(of_generator, generator.trainable_variables))
        critic_optimizer.apply_gradients(zip(of_critic, critic.trainable_variables))
        return generator_loss, critic_loss

    pictures, losses = [], []
    for epoch in range(EPOCHS):
        for real in data:
            losses.append([float(one) for one in train_step(real, tf.random.normal([BATCH, 4]))])
            paced()
        pictures.append(generator(fixed, training=False).numpy().tolist())
    return [generator, critic], [pictures, losses]


class Block(keras.layers.Layer):
    def __init__(self, width):
        super().__init__()
        self.width, self.calls = width, 0

    def build(self, shape):
        self.kernel = self.add_weight(shape=(shape[-1], self.width), initializer="glorot_uniform", name="kernel")
        self.mean = self.add_weight(shape=(), initializer="zeros", trainable=False, name="mean")

    def call(self, inputs):
        self.calls += 1
        self.mean.assign(0.9 * self.mean + 0.1 * tf.reduce_mean(inputs))
        return tf.nn.relu(inputs @ self.kernel - self.mean)


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.blocks = [Block(16), Block(24)]
        self.dropout = keras.layers.Dropout(0.1)
        self.head = keras.layers.Dense(1)
        self.seen = {"batches": 0, "loss": []}

    def call(self, inputs, training=False):
        for block in self.blocks:
            inputs = block(inputs)
        return self.head(self.dropout(inputs, training=training))


class Trainer:
    """Everything in classes; a model that is built with its first batch."""

    def __init__(self, model, data):
        self.model, self.data, self.step, self.log = model, data, 0, []
        self.optimizer = keras.optimizers.SGD(0.02, momentum=0.9, nesterov=True)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.epoch(epoch)

    def epoch(self, number):
        for batch in self.data:
            loss = self.train_step(*batch)
            self.model.seen["batches"] += 1
            self.model.seen["loss"].append(float(loss))
            self.step += 1
            paced()

    @tf.function
    def train_step(self, inputs, targets):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.abs(self.model(inputs, training=True) - targets))
        gradients = tape.gradient(loss, self.model.trainable_weights)
        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        self.optimizer.apply(gradients, self.model.trainable_weights)
        return loss


def trainer_class():
    trainer = Trainer(Net(), batches().prefetch(2))
    trainer.fit(EPOCHS)
    return [trainer.model], [trainer.step, trainer.model.seen]


def accumulation():
    """Gradients of three batches for one update."""
    data, model = batches(), network()
    optimizer = keras.optimizers.AdamW(1e-2)
    kept, updates = None, 0
    for epoch in range(EPOCHS):
        for inputs, targets in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(inputs, training=True) - targets)) / 3
            gradients = tape.gradient(loss, model.trainable_variables)
            kept = gradients if kept is None else [a + b for a, b in zip(kept, gradients)]
            updates += 1
            if updates % 3 == 0:
                optimizer.apply_gradients(zip(kept, model.trainable_variables))
                kept = None
            paced()
    return [model], updates


def drawn_rows():
    order = np.random.permutation(SAMPLES)
    for row in order:
        yield x[row] + np.random.normal(scale=0.01, size=8).astype("float32"), y[row]


def from_generator():
    """Data from Python, with draws of NumPy's."""
    spec = (tf.TensorSpec((8,), tf.float32), tf.TensorSpec((1,), tf.float32))
    data = tf.data.Dataset.from_generator(drawn_rows, output_signature=spec).batch(BATCH)
    model, optimizer = network(), keras.optimizers.Adam(1e-2)
    step = 0
    for epoch in range(EPOCHS):
        for batch in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(batch[0], training=True) - batch[1]))
            optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
            step += 1
            paced()
        print("epoch", epoch, float(loss))
    return [model], step


def slices():
    """No data set: rows are drawn by a permutation, and a compiled step is called with them."""
    model, optimizer = network(), keras.optimizers.Adam(1e-2)
    losses = []

    @tf.function
    def train_step(inputs, targets):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(inputs, training=True) - targets))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    for epoch in range(EPOCHS):
        order = np.random.permutation(SAMPLES)
        for begin in range(0, SAMPLES, BATCH):
            rows = order[begin : begin + BATCH]
            loss = train_step(tf.constant(x[rows]), tf.constant(y[rows]))
            losses.append(float(loss))
            paced()
    return [model], losses


def update(model, optimizer, inputs, targets):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(inputs, training=True) - targets))
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return float(loss)


def eager_slices():
    """The same eagerly, the step in a function of its own."""
    model, optimizer = network(), keras.optimizers.Adam(1e-2)
    chance = np.random.default_rng(5)
    losses = []
    for step in range(EPOCHS * SAMPLES // BATCH):
        rows = chance.choice(SAMPLES, BATCH, replace=False)
        losses.append(update(model, optimizer, x[rows], y[rows]))
        paced()
    return [model], losses


def endless():
    """So many steps of data that never ends; layers that are frozen at first."""
    data = iter(batches().repeat())
    model = network()
    model(x[:1])
    model.layers[0].trainable = False
    optimizer = keras.optimizers.Adam(1e-2)
    for step in range(EPOCHS * SAMPLES // BATCH):
        inputs, targets = next(data)
        if step == 60:
            model.layers[0].trainable = True
            optimizer = keras.optimizers.Adam(1e-3)
        update(model, optimizer, inputs, targets)
        paced()
    return [model], [one.trainable for one in model.layers]


def augmented(inputs, targets):
    return inputs + tf.random.normal([8], stddev=0.01), targets


def pipeline():
    """A pipeline as the guides write it, made anew in each epoch."""
    source = tf.data.Dataset.from_tensor_slices((x, y)).cache()
    model, optimizer = network(), keras.optimizers.Lion(1e-3)
    for epoch in range(EPOCHS):
        for inputs, targets in source.shuffle(200, seed=epoch).map(augmented).batch(BATCH).take(30).prefetch(1):
            update(model, optimizer, inputs, targets)
            paced()
    return [model], epoch


def made_anew():
    """A data set for each epoch, of rows in a drawn order, shuffled without a seed of its own."""
    model, optimizer = network(), keras.optimizers.Adam(1e-2)
    for fold in range(2):
        rows = np.random.permutation(SAMPLES)[: SAMPLES // 2]
        for epoch in range(max(2, EPOCHS // 2)):
            order = np.random.permutation(rows)
            data = tf.data.Dataset.from_tensor_slices((x[order], y[order])).shuffle(50).batch(BATCH)
            for inputs, targets in data:
                update(model, optimizer, inputs, targets)
                paced()
    return [model], rows[:4].tolist()


class Linear(tf.Module):
    def __init__(self):
        super().__init__()
        self.weights = [tf.Variable(tf.random.normal([8, 1])), tf.Variable(tf.zeros([1]))]
        self.average = {"w": tf.Variable(tf.zeros([8, 1]), trainable=False)}

    def __call__(self, inputs):
        return inputs @ self.weights[0] + self.weights[1]


def tf_module():
    """No layers of Keras: variables of one's own, an average of them, an optimizer by Keras."""
    model, data = Linear(), batches()
    optimizer = keras.optimizers.Adagrad(0.1)
    best, noise = tf.constant(1e9), tf.constant(0.0)
    for epoch in range(EPOCHS):
        for inputs, targets in data:
            noise = tf.random.uniform([])
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(inputs) - targets)) + 0.01 * noise
            optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
            model.average["w"].assign(0.9 * model.average["w"] + 0.1 * model.weights[0])
            best = tf.minimum(best, loss)
            paced()
    return [model], [float(best), float(noise)]


def mixed_precision():
    """Scaled losses in half precision."""
    keras.mixed_precision.set_global_policy("mixed_float16")
    data, model = batches(), network()
    optimizer = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.Adam(1e-2), initial_scale=2.0**10, dynamic_growth_steps=20
    )
    for epoch in range(EPOCHS):
        for inputs, targets in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.cast(model(inputs, training=True), "float32") - targets))
                scaled = optimizer.scale_loss(loss)
            optimizer.apply(tape.gradient(scaled, model.trainable_variables), model.trainable_variables)
            paced()
    return [model], float(optimizer.dynamic_scale.numpy())


def early_stopping():
    from tqdm import tqdm

    data, model = batches(), network()
    optimizer = keras.optimizers.Adam(3e-2)
    best, waited, weights = float("inf"), 0, None
    for epoch in range(EPOCHS):
        for inputs, targets in tqdm(data, disable=True):
            update(model, optimizer, inputs, targets)
            paced()
        error = float(tf.reduce_mean(tf.abs(model(x[:100], training=False) - y[:100])))
        if error < best:
            best, waited, weights = error, 0, model.get_weights()
        else:
            waited += 1
            optimizer.learning_rate = optimizer.learning_rate * 0.5
        if waited > EPOCHS // 2:
            break
    model.set_weights(weights)
    return [model], [best, waited, float(optimizer.learning_rate.numpy())]


def keras_noise():
    """Random numbers of Keras's own: a seed generator, and the global one."""
    data, model = batches(), network()
    optimizer, seeds = keras.optimizers.Adam(1e-2), keras.random.SeedGenerator(3)
    for epoch in range(EPOCHS):
        for inputs, targets in data:
            inputs = (
                inputs + 0.1 * keras.random.normal(inputs.shape, seed=seeds) + 0.1 * keras.random.normal(inputs.shape)
            )
            update(model, optimizer, inputs, targets)
            paced()
    return [model], keras.random.normal((2,)).numpy().tolist()


def nested_tapes():
    """A penalty on gradients."""
    model, optimizer = network(), keras.optimizers.Adam(1e-2)
    for step in range(EPOCHS * SAMPLES // BATCH):
        inputs = tf.constant(x[np.random.choice(SAMPLES, BATCH)])
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                inner.watch(inputs)
                loss = tf.reduce_mean(tf.square(model(inputs, training=True) - 1.0))
            loss += 0.1 * tf.reduce_mean(tf.square(inner.gradient(loss, inputs)))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        paced()
    return [model], float(loss)


def updated_by_hand():
    """No optimizer: variables of one's own are written by the script, eagerly; what a step returns is added to a number."""
    model, held, losses = Linear(), tf.constant(x), []
    total = 0.0

    def step(rows, rate):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(tf.gather(held, rows)) - y[rows]))
        for variable, gradient in zip(model.weights, tape.gradient(loss, model.weights)):
            variable.assign_sub(rate * gradient)
        return loss.numpy()

    for epoch in range(2 * EPOCHS):
        order = np.random.permutation(SAMPLES)
        for begin in range(0, SAMPLES, BATCH):
            total += step(order[begin : begin + BATCH], 0.01)
            paced()
        losses.append(float(total))
    return [model], losses


def compiled_network():
    model = network()
    model.compile(keras.optimizers.Adam(1e-2), "mse", metrics=["mae"])
    return model


def on_batch():
    """train_on_batch over slices in a drawn order."""
    model, losses = compiled_network(), []
    held_out = tf.data.Dataset.from_tensor_slices((x[:64], y[:64])).batch(32)
    for epoch in range(EPOCHS):
        order = np.random.permutation(SAMPLES)
        for i in range(SAMPLES // BATCH):
            rows = order[i * BATCH : (i + 1) * BATCH]
            loss, error = model.train_on_batch(x[rows], y[rows])
            losses.append((float(loss), float(error)))
            paced()
        for inputs, targets in held_out:
            losses.append(float(model.test_on_batch(inputs, targets)[0]))
    return [model], losses


def on_batch_of_a_built_model():
    """Functional: its layers are built before the first batch, and what is measured is not. It is evaluated, too."""
    inputs, losses = keras.Input((8,)), []
    hidden = keras.layers.Dropout(0.1)(keras.layers.Dense(16, activation="tanh")(inputs))
    model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    model.compile(keras.optimizers.RMSprop(1e-2), "mse", metrics=["mae"])
    for epoch in range(EPOCHS):
        order = np.random.permutation(SAMPLES)
        for begin in range(0, SAMPLES, BATCH):
            rows = order[begin : begin + BATCH]
            loss, _ = model.train_on_batch(x[rows], y[rows])
            losses.append(float(loss))
            paced()
        losses.append(float(model.evaluate(x[:64], y[:64], verbose=0)[0]))
    return [model], losses


def on_batch_of_data():
    """train_on_batch over tf.data, test_on_batch after each epoch."""
    model, data, losses = compiled_network(), batches(), []
    for epoch in range(EPOCHS):
        for inputs, targets in data:
            result = model.train_on_batch(inputs, targets, return_dict=True)
            paced()
        losses.append(
            [{name: float(one) for name, one in result.items()}, float(model.test_on_batch(x[:64], y[:64])[0])]
        )
    return [model], losses


def on_batch_gan():
    """Three calls in a turn, two models of which share one."""
    critic = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1, activation="sigmoid")])
    critic.compile(keras.optimizers.Adam(2e-3), "binary_crossentropy")
    generator = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(8)])
    noise_in = keras.Input((4,))
    critic_again = keras.models.clone_model(critic)
    both = keras.Model(noise_in, critic_again(generator(noise_in)))
    critic_again.trainable = False
    both.compile(keras.optimizers.Adam(2e-3), "binary_crossentropy")
    real, fake, losses = np.ones((BATCH, 1)), np.zeros((BATCH, 1)), []
    for step in range(EPOCHS * SAMPLES // BATCH):
        rows = np.random.randint(0, SAMPLES, BATCH)
        noise = np.random.normal(size=(BATCH, 4)).astype("float32")
        made = generator.predict_on_batch(noise)
        loss_real = critic.train_on_batch(x[rows], real)
        loss_fake = critic.train_on_batch(made, fake)
        loss_both = both.train_on_batch(noise, real)
        losses.append([float(loss_real), float(loss_fake), float(loss_both)])
        paced()
    return [critic, generator], losses


def drawn_batches():
    while True:
        rows = np.random.choice(SAMPLES, BATCH)
        yield x[rows], y[rows]


def on_batch_of_generator():
    """train_on_batch over a generator of one's own that never ends."""
    model, source, losses = compiled_network(), drawn_batches(), []
    for step in range(EPOCHS * SAMPLES // BATCH):
        inputs, targets = next(source)
        losses.append(float(model.train_on_batch(inputs, targets)[0]))
        paced()
    return [model], losses


def in_batches(inputs, targets, size):
    """Rows in a drawn order, as many scripts have it."""
    order = np.random.permutation(len(inputs))
    for begin in range(0, len(inputs), size):
        rows = order[begin : begin + size]
        yield inputs[rows], targets[rows]


def on_batch_of_epochs():
    """train_on_batch over a generator for each epoch, which is counted."""
    model, losses = compiled_network(), []
    for epoch in range(EPOCHS):
        for i, (inputs, targets) in enumerate(in_batches(x, y, BATCH)):
            loss = model.train_on_batch(inputs, targets)
            losses.append((i, float(loss[0])))
            paced()
    return [model], losses


def streamed():
    """From disk, and not from memory."""
    import holdfast.data

    if not os.path.exists("x.npy"):
        np.save("y.npy", y)
        np.save("x.part.npy", x)
        os.replace("x.part.npy", "x.npy")
    data = holdfast.data.open("x.npy", labels="y.npy", batch=BATCH, shuffle=True, seed=7, budget="8K").tensorflow()
    model = network()
    optimizer = keras.optimizers.Adam(1e-2)
    losses = []
    for epoch in range(EPOCHS):
        for inputs, targets in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(inputs, training=True) - targets))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            losses.append(float(loss))
            paced()
    return [model], losses


KINDS = {
    one.__name__: one
    for one in (
        eager, compiled, gan, trainer_class, accumulation, from_generator, slices, eager_slices, endless, pipeline, made_anew, tf_module,
        mixed_precision, early_stopping, keras_noise, nested_tapes, on_batch, on_batch_of_a_built_model, on_batch_of_data,
        on_batch_of_generator, on_batch_of_epochs, on_batch_gan, streamed, updated_by_hand,
    )
}  # fmt: skip


def digest(models):
    return hashlib.sha256(b"".join(v.numpy().tobytes() for model in models for v in model.variables)).hexdigest()


if __name__ == "__main__":
    models, record = KINDS[sys.argv[1]]()
    drawn = [*np.random.uniform(size=1).tolist(), random.random(), float(tf.random.uniform([]))]
    print(json.dumps({"weights": digest(models), "record": record, "next": drawn}))
