from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, torch

CUT_OFF = "cut off from the loss"  # the words of `detectors/numerics/untrained`
CLEARED = "gone at the update"
REPLACED = "no model has any more"
NOT_HAD = "no optimizer has them|never given to the optimizer"
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
            "Make the optimizer after the last layer was put in",
            "model.fc = torch.nn.Linear(model.fc.in_features, classes)\noptimizer = torch.optim.Adam(model.parameters(), lr=1e-3)  # after it",
            said=REPLACED,
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
            "Ask the tape for all that is to be trained, and give it to the optimizer",
            "variables = encoder.trainable_variables + head.trainable_variables\ngradients = tape.gradient(loss, variables)\noptimizer.apply_gradients(zip(gradients, variables))",
            said=NOT_HAD,
        ),
        keras(
            "Set what is to be trained, then compile again",
            "model.trainable = True\nmodel.compile(optimizer=optimizer, loss=loss)\nmodel.summary(show_trainable=True)",
            unsaid=f"{CUT_OFF}|{NOT_HAD}",
        ),
        torch(
            "Give the optimizer all that is to be trained",
            "for parameter in model.parameters():\n    parameter.requires_grad_(True)\noptimizer = torch.optim.Adam(model.parameters(), lr=1e-3)",
            unsaid=f"{CUT_OFF}|{REPLACED}|{CLEARED}",
        ),
        torch(
            "See what gets no gradient",
            "loss.backward()\nprint([name for name, p in model.named_parameters() if p.grad is None])",
        ),
    ),
)
