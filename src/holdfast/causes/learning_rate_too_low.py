from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, torch

CLIPPED = "clipped to almost nothing"  # the words of `detectors/numerics/low_rate`
FALLEN = "fell to almost nothing"
CAUSE = CauseRecord(
    id="learning-rate-too-low",
    family="numerics",
    title="The learning rate is too low",
    meaning="Each update moves the weights so little that training barely moves. Nothing is wrong otherwise.",
    sure="Updates are less than a millionth of the weights, and the loss falls in a straight, tiny slope.",
    recipes=(
        torch(
            "Clip at a norm that only outliers have",
            "torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)",
            said=CLIPPED,
        ),
        keras(
            "Clip at a norm that only outliers have",
            "optimizer = keras.optimizers.$optimizer(clipnorm=1.0)",
            said=CLIPPED,
        ),
        torch(
            "Step the scheduler once an epoch, not once a batch",
            "for epoch in range(epochs):\n    for x, y in loader:\n        ...\n        optimizer.step()\n    scheduler.step()  # here",
            said=FALLEN,
        ),
        torch(
            "Or let it count batches",
            "scheduler = StepLR(optimizer, step_size=10 * len(loader), gamma=0.1)",
            said=FALLEN,
        ),
        keras(
            "A schedule counts batches: tell it how many an epoch has",
            "schedule = keras.optimizers.schedules.ExponentialDecay(\n    $higher_rate, decay_steps=len(x) // batch_size, decay_rate=0.9)",
            said=FALLEN,
        ),
        keras(
            "Or lower it by less each epoch",
            "keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.95)",
            said=FALLEN,
        ),
        keras(
            "A usual learning rate",
            "optimizer = keras.optimizers.$optimizer(learning_rate=$higher_rate)",
            unsaid=f"{CLIPPED}|{FALLEN}",
        ),
        torch(
            "A usual learning rate",
            "optimizer = torch.optim.$optimizer(model.parameters(), lr=$higher_rate)",
            unsaid=f"{CLIPPED}|{FALLEN}",
        ),
    ),
)
