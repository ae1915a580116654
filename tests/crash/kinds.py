"""The kinds of script that `kill_table` kills, one a line. What is imported before they are forked goes by their group."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.resume import KERAS_JAX_KINDS
from tests.inside.attempts import KINDS as FITS
from tests.inside.attempts import ON_OTHER_BACKENDS, SCRIPTS
from tests.inside.attempts import UNEDITED as TORCH

TENSORFLOW = SCRIPTS / "resume_tensorflow.py"  # tapes and train_on_batch
SAMPLERS = TORCH.with_name("resume_torch_samplers.py")
EXACT = ("weights", "record", "next", "uses", "history", "epochs", "batches", "iterations")


@dataclass(frozen=True)
class Group:
    """Scripts that one process can be forked into."""

    loads: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)


GROUPS = {
    "torch": Group(("torch",)),
    "tensorflow": Group(
        ("tensorflow", "keras"), {"KERAS_BACKEND": "tensorflow", "EPOCHS": "3"}
    ),  # eager steps are slow
    "fit": Group(("tensorflow", "keras"), {"KERAS_BACKEND": "tensorflow"}),
    "transformers": Group(("torch", "transformers.trainer")),
    "lightning": Group(("torch", "lightning.pytorch")),
    "pytorch_lightning": Group(("torch", "pytorch_lightning"), {"PACKAGE": "pytorch_lightning"}),
    "keras_on_torch": Group(("torch", "keras"), {"KERAS_BACKEND": "torch"}),
    "keras_on_jax": Group(("jax", "keras"), {"KERAS_BACKEND": "jax"}),
}


@dataclass(frozen=True)
class Kind:
    group: str
    name: str
    script: Path
    expected: str = "exact"  # refused: cannot be saved, in words; own: keeps its own checkpoints; edited, other_model
    same: tuple[str, ...] = EXACT  # of its report

    def __str__(self) -> str:
        return f"{self.group}.{self.name}"


def listed(script: Path) -> list[str]:
    """In the script's own table of kinds."""
    text = script.read_text()
    table = text[text.index("KINDS = {") : text.index("}  # fmt: skip")]
    return [word.strip() for word in table[table.index("in (") + 4 : table.rindex(")")].split(",") if word.strip()]


def all_of(group: str, script: Path, expected: str = "exact") -> list[Kind]:
    return [Kind(group, name, script, expected) for name in listed(script)]


KINDS = [
    *all_of("torch", TORCH),
    *all_of("torch", TORCH.with_name("resume_torch_by_hand.py")),
    *all_of("torch", TORCH.with_name("resume_torch_turns.py")),
    *(Kind("torch", name, SAMPLERS) for name in ("counting_sampler", "augmented_by_kept_workers")),
    *(Kind("torch", name, SAMPLERS, "refused") for name in ("draws_in_the_sampler", "also_validated_by_kept_workers")),
    Kind("torch", "own", TORCH.with_name("resume_torch_own.py"), "own"),
    Kind("torch", "edited", TORCH, "edited"),
    Kind("torch", "other_model", TORCH, "other_model"),
    *all_of("torch", TORCH.with_name("resume_torch_refused.py"), "refused"),
    *all_of("transformers", TORCH.with_name("resume_hf.py")),
    *all_of("lightning", TORCH.with_name("resume_lightning.py")),
    Kind("pytorch_lightning", "pl_plain", TORCH.with_name("resume_lightning.py")),
    *all_of("tensorflow", TENSORFLOW),
    Kind("tensorflow", "own", TENSORFLOW.with_name("resume_tensorflow_own.py"), "own"),
    Kind("tensorflow", "own_weights", TENSORFLOW.with_name("resume_tensorflow_own.py"), "own"),
    *all_of("tensorflow", TENSORFLOW.with_name("resume_tensorflow_refused.py"), "refused"),
    Kind("fit", "arrays", FITS),
    Kind("fit", "tf_data", FITS),
    Kind("fit", "tf_data_repeat", FITS),
    Kind("fit", "py_dataset", FITS),
    Kind("fit", "generator", FITS),
    Kind("fit", "streamed", FITS),
    Kind("fit", "two_fits", FITS),
    Kind("fit", "two_models", FITS),
    Kind("fit", "two_optimizers", FITS),
    Kind("fit", "schedule", FITS),
    Kind("fit", "keras_mixed_precision", FITS),
    Kind("fit", "steps_per_execution", FITS),
    Kind("fit", "steps_per_execution_repeat", FITS),
    Kind("fit", "unseeded_arrays", FITS, same=("uses", "iterations")),
    Kind("keras_on_torch", "keras_torch_arrays", ON_OTHER_BACKENDS),
    Kind("keras_on_torch", "keras_torch_loader", ON_OTHER_BACKENDS),
    Kind("keras_on_torch", "keras_torch_dataset", ON_OTHER_BACKENDS),
    Kind("keras_on_torch", "keras_torch_two_fits", ON_OTHER_BACKENDS),
    *(Kind("keras_on_jax", name, ON_OTHER_BACKENDS) for name in KERAS_JAX_KINDS),
]
