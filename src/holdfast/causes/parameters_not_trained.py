from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, torch

CUT_OFF = "cut off from the loss"  # the words of `detectors/numerics/untrained`
CLEARED = "gone at the update"
CAUSE = CauseRecord(
    id="parameters-not-trained",
    family="numerics",
    title="Weights that should be trained never change",
    meaning="They are frozen, were not given to the optimizer, or nothing of the loss depends on them. The rest of the model trains around them.",
    sure="No gradient, or no update, for a layer over many steps.",
    says_more_than=("learning-rate-too-low", "vanishing-gradients", "dead-activations"),
    recipes=(
        torch(
            "Clear gradients before the backward pass, not between it and the update",
            "optimizer.zero_grad()\nloss.backward()\noptimizer.step()",
            said=CLEARED,
        ),
        torch(
            "Leave the way from the loss to these layers whole",
            "features = encoder(x)\n# without .detach(), .data, .numpy() or torch.no_grad() on it",
            said=CUT_OFF,
        ),
        keras(
            "Leave the way from the loss to these layers whole",
            "features = encoder(x, training=True)\n# within the tape, without tf.stop_gradient or .numpy() on it",
            said=CUT_OFF,
        ),
        keras(
            "Set what is to be trained, then compile again",
            "model.trainable = True\nmodel.compile(optimizer=optimizer, loss=loss)\nmodel.summary(show_trainable=True)",
            unsaid=CUT_OFF,
        ),
        torch(
            "Give the optimizer all that is to be trained",
            "for parameter in model.parameters():\n    parameter.requires_grad_(True)\noptimizer = torch.optim.Adam(model.parameters(), lr=1e-3)",
            unsaid=CUT_OFF,
        ),
        torch(
            "See what gets no gradient",
            "loss.backward()\nprint([name for name, p in model.named_parameters() if p.grad is None])",
        ),
    ),
)
