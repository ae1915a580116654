"""Keras 3's private names, all of them. `python -m tests.compatibility` looks for them in other versions."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, Set, Tuple

from ..seams import CHECKPOINT, DETAIL, NUMERICS, RESCUE, RESUME, TELEMETRY, Seam

SEEN = "3.8 to 3.15"
_SRC = "keras.src"
_TRAINER = f"{_SRC}.models.model"
_EPOCHS = f"{_SRC}.trainers.epoch_iterator"
_CALLBACKS = f"{_SRC}.callbacks.callback_list"
_OPTIMIZER = f"{_SRC}.optimizers.base_optimizer"
_ADAPTERS = f"{_SRC}.trainers.data_adapters"
_ARRAYS, _LOADERS = f"{_ADAPTERS}.array_data_adapter", f"{_ADAPTERS}.torch_data_loader_adapter"
TRACEBACKS = f"{_SRC}.utils.traceback_utils"

ANY_BACKEND = (
    Seam(_TRAINER, "Trainer.make_train_function", (TELEMETRY, CHECKPOINT, RESUME, RESCUE)),
    Seam(_CALLBACKS, "CallbackList.on_train_begin", (TELEMETRY, CHECKPOINT, RESUME)),
    Seam(_CALLBACKS, "CallbackList.on_train_end", (TELEMETRY,)),
    Seam(_CALLBACKS, "CallbackList.on_epoch_begin", (TELEMETRY, CHECKPOINT, RESUME)),
    Seam(_CALLBACKS, "CallbackList.on_test_begin", (TELEMETRY,)),
    Seam(_EPOCHS, "EpochIterator.__iter__", (DETAIL, CHECKPOINT, RESUME)),
    Seam(_EPOCHS, "EpochIterator._interrupted_warning", (DETAIL,)),
    Seam(_EPOCHS, "EpochIterator", (DETAIL, CHECKPOINT, RESUME), assigned="_num_batches"),
    Seam(_EPOCHS, "EpochIterator", (DETAIL, CHECKPOINT, RESUME), assigned="_steps_seen"),
    Seam(_OPTIMIZER, "BaseOptimizer.apply", (TELEMETRY, RESCUE)),
    Seam(_OPTIMIZER, "BaseOptimizer", (RESCUE,), assigned="_trainable_variables"),
    Seam(f"{_SRC}.optimizers.base_optimizer", "BaseOptimizer._get_current_learning_rate", (DETAIL,)),
    Seam(f"{_SRC}.optimizers.adam", "Adam", (DETAIL,), assigned="_momentums"),
    Seam(f"{_SRC}.optimizers.adamax", "Adamax", (DETAIL,), assigned="_m"),
    Seam(TRACEBACKS, "_EXCLUDED_PATHS", (DETAIL,)),
    Seam(f"{_SRC}.layers.layer", "Layer._flatten_layers", (RESCUE, NUMERICS)),
    Seam(f"{_SRC}.layers.layer", "Layer", (RESCUE,), assigned="_call_has_training_arg"),
    Seam(f"{_SRC}.trainers.trainer", "Trainer._compute_loss", (RESCUE,)),
    Seam(f"{_ADAPTERS}.data_adapter_utils", "unpack_x_y_sample_weight", (RESCUE, NUMERICS)),
    Seam(f"{_SRC}.losses.loss", "reduce_weighted_values", (RESCUE, NUMERICS)),
    Seam(f"{_SRC}.metrics.reduction_metrics", "Mean.update_state", (RESCUE,)),
)
OF_LOOPS = (  # beside TO_SAVE: loops of the user's own
    Seam(f"{_SRC}.layers.layer", "Layer", (CHECKPOINT, RESUME), assigned="_layers"),
    Seam(f"{_SRC}.layers.layer", "Layer", (CHECKPOINT, RESUME), assigned="_seed_generators"),
    Seam(f"{_SRC}.layers.layer", "Layer", (CHECKPOINT, RESUME), assigned="_trainable_variables"),
    Seam(f"{_SRC}.layers.layer", "Layer", (CHECKPOINT, RESUME), assigned="_non_trainable_variables"),
    Seam(f"{_SRC}.layers.layer", "Layer", (CHECKPOINT, RESUME), assigned="_trainable"),
    Seam(_OPTIMIZER, "BaseOptimizer", (CHECKPOINT, RESUME), assigned="_trainable_variables"),
    Seam(f"{_SRC}.trainers.trainer", "Trainer._symbolic_build", (RESUME,)),
    Seam(f"{_SRC}.random.seed_generator", "global_seed_generator", (RESUME,)),
    Seam(f"{_SRC}.backend.common.global_state", "get_global_attribute", (CHECKPOINT, RESUME)),
)
TO_SAVE = (  # whatever the backend
    Seam(f"{_SRC}.backend.common.variables", "Variable", (CHECKPOINT, RESUME), assigned="_value"),
    Seam(TRACEBACKS, "filter_traceback", (CHECKPOINT, RESUME)),
    Seam(_TRAINER, "Trainer.fit.__wrapped__", (CHECKPOINT, RESUME)),
    Seam(_EPOCHS, "EpochIterator", (CHECKPOINT, RESUME), assigned="_current_iterator"),
    Seam(_EPOCHS, "EpochIterator", (RESUME,), assigned="_epoch_iterator"),
    Seam(_EPOCHS, "EpochIterator._enumerate_iterator", (RESUME,)),
    Seam(_ARRAYS, "ArrayDataAdapter", (CHECKPOINT, RESUME, NUMERICS), assigned="_inputs"),
    Seam(
        f"{_ADAPTERS}.generator_data_adapter", "GeneratorDataAdapter", (CHECKPOINT, RESUME), assigned="_first_batches"
    ),
    Seam(f"{_ADAPTERS}.py_dataset_adapter", "PyDataset", (CHECKPOINT, RESUME), assigned="_workers"),
    Seam(f"{_ADAPTERS}.array_slicing", "train_validation_split", (RESUME,)),
    Seam(f"{_SRC}.random.seed_generator", "SeedGenerator.__init__", (CHECKPOINT, RESUME)),
    Seam(f"{_SRC}.trainers.trainer", "Trainer", (RESUME,), assigned="_initial_epoch"),
)
_TF, _TORCH, _JAX = (f"{_SRC}.backend.{backend}" for backend in ("tensorflow", "torch", "jax"))
ON_TENSORFLOW = (
    *TO_SAVE,
    Seam(f"{_TF}.trainer", "TensorFlowTrainer", (CHECKPOINT, RESUME, RESCUE), inner="one_step_on_data"),
    Seam(f"{_TF}.trainer", "TensorFlowTrainer", (CHECKPOINT, RESUME), assigned="_eval_epoch_iterator"),
    Seam(f"{_TF}.trainer", "TFEpochIterator._get_iterator", (CHECKPOINT, RESUME)),
    Seam(f"{_TF}.trainer", "TFEpochIterator", (CHECKPOINT, RESUME), assigned="_distributed_dataset"),
    Seam(_ARRAYS, "ArrayDataAdapter", (CHECKPOINT, RESUME), assigned="_shuffle"),
    Seam(f"{_TF}.core", "Variable", (RESCUE, NUMERICS), assigned="_value"),
    Seam(f"{_TF}.core", "Variable._direct_assign", (RESCUE, NUMERICS)),
    Seam(f"{_TF}.random", "", (RESCUE,)),
)
ON_TORCH = (
    *TO_SAVE,
    Seam(f"{_TORCH}.trainer", "TorchTrainer", (CHECKPOINT, RESUME), assigned="_eval_epoch_iterator"),
    Seam(f"{_TORCH}.trainer", "TorchEpochIterator", (CHECKPOINT, RESUME)),
    Seam(f"{_SRC}.trainers.trainer", "Trainer._symbolic_build", (RESUME,)),
    Seam(_LOADERS, "TorchDataLoaderAdapter", (CHECKPOINT, RESUME), assigned="_dataloader"),
    Seam(f"{_TORCH}.core", "Variable._direct_assign", (RESCUE,)),
)
ON_JAX = (
    *TO_SAVE,
    Seam(f"{_JAX}.trainer", "JAXTrainer", (CHECKPOINT, RESUME), assigned="_eval_epoch_iterator"),
    Seam(f"{_JAX}.trainer", "JAXEpochIterator", (CHECKPOINT, RESUME)),
    Seam(f"{_SRC}.trainers.trainer", "Trainer._symbolic_build", (RESUME,)),
)

WEIGHTS, LAYERS = ("_trainable_variables", "_non_trainable_variables"), "_layers"  # of a layer, as attributes
DIRECT_ASSIGN = "_direct_assign"  # of a variable's class
GET_ITERATOR = "_get_iterator"  # of the class that walks through an epoch
STEP_METHODS = ("train_step", "compute_loss", "_compute_loss")  # that a model of the user's own may replace
INTERRUPTED = "_interrupted_warning"
OF_A_PY_DATASET = frozenset({"_workers", "_use_multiprocessing", "_max_queue_size"})  # how it is run, not what it holds
# Not a state of its own; CSVLogger looks at the file that is there whether it needs a header.
OF_A_CALLBACK = frozenset({"_model", "model", "params", "validation_data", "append_header"})


def is_keras_3() -> bool:
    return _SRC in sys.modules


def is_of_keras(module: str) -> bool:
    return module.startswith(f"{_SRC}.")


def _module(name: str) -> Any:
    return sys.modules[f"{_SRC}.{name}"]  # all of them are loaded: `import keras` is complete


# -- classes and functions


def trainer_class() -> Any:
    return _module("models.model").Trainer


def callback_list_class() -> Any:
    return _module("callbacks.callback_list").CallbackList


def epoch_iterator_class() -> Any:
    """None in a Keras that walks through an epoch otherwise."""
    return getattr(sys.modules.get(_EPOCHS), "EpochIterator", None)


def epoch_iterator_class_of(backend: str) -> Any:
    names = {"tensorflow": "TFEpochIterator", "torch": "TorchEpochIterator", "jax": "JAXEpochIterator"}
    return getattr(_module(f"backend.{backend}.trainer"), names[backend])


def own_loader(epoch_iterator: Any) -> Any:
    """A DataLoader of the user's that Keras was given; None where it makes its own."""
    return getattr(epoch_iterator.data_adapter, "_dataloader", None)


def layer_class() -> Any:
    return _module("layers.layer").Layer


def optimizer_class() -> Any:
    return _module("optimizers.base_optimizer").BaseOptimizer


def seed_generator_class() -> Any:
    return _module("random.seed_generator").SeedGenerator


def variable_class(backend: str) -> Any:
    return _module(f"backend.{backend}.core").Variable


def losses() -> Any:
    return _module("losses.loss")


def mean_class() -> Any:
    return _module("metrics.reduction_metrics").Mean


def random_functions(backend: str) -> Any:
    """None where the backend is not loaded."""
    return sys.modules.get(f"{_SRC}.backend.{backend}.random")


def filter_traceback(function: Callable[..., Any]) -> Any:
    return _module("utils.traceback_utils").filter_traceback(function)


def unpack(data: Any) -> Any:
    return _module("trainers.data_adapters.data_adapter_utils").unpack_x_y_sample_weight(data)


def train_validation_split(arrays: Any, share: float) -> Any:
    return _module("trainers.data_adapters.array_slicing").train_validation_split(arrays, share)


def compiled_step(on_batch: Any) -> Any:
    """The tf.function itself: Keras 3.15 wraps it to turn optionals into None, 3.8 does not. A tf.function has a
    `__wrapped__` of its own, which is the Python code."""
    return on_batch if hasattr(on_batch, "get_concrete_function") else getattr(on_batch, "__wrapped__", on_batch)


def inner(function: Any, name: str) -> Any:
    """A variable of the enclosing function; None in a Keras that is built otherwise."""
    code = getattr(function, "__code__", None)
    if code is None or name not in code.co_freevars:
        return None
    return function.__closure__[code.co_freevars.index(name)].cell_contents


def on_one_device(model: Any) -> bool:
    """Under no distribution strategy of TensorFlow's."""
    strategy = getattr(model, "distribute_strategy", None)
    return strategy is None or type(strategy).__name__ == "_DefaultDistributionStrategy"


# -- what a model, a variable, an optimizer holds


def value_of(variable: Any) -> Any:
    """What the backend holds for it; None before it is built."""
    return variable._value


def value_or_itself(variable: Any) -> Any:
    return getattr(variable, "_value", variable)


def layers_of(model: Any, include_self: bool = True) -> Any:
    return model._flatten_layers(include_self=include_self)


def takes_training(model: Any) -> bool:
    return bool(model._call_has_training_arg)


def compute_loss(model: Any, **data: Any) -> Any:
    return model._compute_loss(**data)


def build(model: Any, epoch_iterator: Any) -> None:
    """Model, metrics and optimizer, by the shapes of a batch."""
    model._symbolic_build(iterator=epoch_iterator)


def nested_metrics(model: Any) -> List[Any]:
    return list(getattr(model, "_metrics", ()))


def trained_by(optimizer: Any) -> List[Any]:
    return list(getattr(optimizer, "_trainable_variables", ()))


def running_means(optimizer: Any) -> Any:
    """Of the gradient, as Adam and its kin keep it."""
    return getattr(optimizer, "_momentums", None) or getattr(optimizer, "_m", None)


def begin_at_the_given_epoch(model: Any) -> None:
    """Another tool's idea of the epoch (BackupAndRestore) is not ours."""
    model._initial_epoch = None


def evaluation_iterator(model: Any) -> Any:
    return getattr(model, "_eval_epoch_iterator", None)


# -- where an epoch is in its data


def steps_seen(epoch_iterator: Any) -> Any:
    return epoch_iterator._steps_seen


def put_steps_seen(epoch_iterator: Any, steps: Any) -> None:
    epoch_iterator._steps_seen = steps


def num_batches(epoch_iterator: Any) -> Any:
    return getattr(epoch_iterator, "_num_batches", None)


def put_num_batches(epoch_iterator: Any, batches: Any) -> None:
    epoch_iterator._num_batches = batches


def has_iterator(epoch_iterator: Any) -> bool:
    """One from the epoch before, which may go on."""
    return epoch_iterator._current_iterator is not None


def walk(epoch_iterator: Any) -> Any:
    return epoch_iterator._enumerate_iterator()


def put_walk(epoch_iterator: Any, walking: Any) -> None:
    epoch_iterator._epoch_iterator = walking


def new_iterator(epoch_iterator: Any) -> Any:
    return iter(epoch_iterator._get_iterator())


def dataset_of(epoch_iterator: Any) -> Any:
    return getattr(epoch_iterator, "_distributed_dataset", None)


def is_shuffled(array_adapter: Any) -> bool:
    return bool(array_adapter._shuffle)


def arrays_of(array_adapter: Any) -> Any:
    return array_adapter._inputs


def first_batches(generator_adapter: Any) -> Any:
    return generator_adapter._first_batches


# -- loops of the user's own

TRAINABLE = "_trainable"  # of a layer
TRAINED_BY = "_trainable_variables of an optimizer"
OF_METRICS = "metrics_variables"
OF_A_LAYER = ("_layers", "_metrics", "_seed_generators", "_trainable_variables", "_non_trainable_variables")


def classes_with_variables() -> Tuple[type, ...]:
    keras: Any = sys.modules["keras"]
    return keras.layers.Layer, optimizer_class(), keras.metrics.Metric, seed_generator_class()


def any_variable_class() -> Any:
    return _module("backend.common.variables").Variable


def held_by(owner: Any) -> Dict[str, List[Any]]:
    """What holds its variables, in an order that a rerun repeats."""
    keras: Any = sys.modules["keras"]
    if isinstance(owner, keras.layers.Layer):
        held = {name: list(vars(owner).get(name) or ()) for name in OF_A_LAYER}
        if getattr(owner, "compiled", False):
            held[OF_METRICS] = list(owner.metrics_variables)
        return held
    if isinstance(owner, optimizer_class()):
        return {
            "variables": list(owner.variables),
            TRAINED_BY: list(getattr(owner, "_trainable_variables", None) or ()),
        }
    return {"variables": [owner.state] if isinstance(owner, seed_generator_class()) else list(owner.variables)}


def schedule_of(owner: Any) -> Any:
    """None where its learning rate is a number, or it has none."""
    keras: Any = sys.modules["keras"]
    found = getattr(owner, "_learning_rate", None)
    return found if isinstance(found, keras.optimizers.schedules.LearningRateSchedule) else None


def scale_schedule(optimizer: Any, factor: Any) -> bool:
    """Its rate times `factor`, a variable, from the next trace on; None: as it was. False where this Keras has no such place."""
    optimizer.__dict__.pop("_get_current_learning_rate", None)  # past Keras's tracking of attributes
    current = getattr(optimizer, "_get_current_learning_rate", None)
    if current is not None and factor is not None:
        optimizer.__dict__["_get_current_learning_rate"] = lambda: current() * factor
    return current is not None


def build_config(owner: Any) -> Any:
    """The shapes a layer was built for, as plain values; None where it does not tell."""
    told = getattr(owner, "get_build_config", None)
    config = told() if told is not None else None
    return _plain(config) if config else None


def _plain(value: Any) -> Any:
    """Keras keeps shapes in lists and dicts of its own."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        plain = [_plain(one) for one in value]
        return tuple(plain) if isinstance(value, tuple) else plain
    return value


def build_for_batch(model: Any, batch: Any) -> None:
    """Model, metrics, loss and optimizer, without training: as `fit` does on other backends."""
    model._symbolic_build(data_batch=batch)


def names_of_libraries(kind: type) -> Set[str]:
    """Attributes that Keras and TensorFlow may give an object of a class of the user's."""
    found: Set[str] = set()
    for one in kind.__mro__:
        if one.__module__.split(".")[0] in ("keras", "tensorflow"):
            for member in vars(one).values():
                function = getattr(member, "fget", None) or getattr(member, "__func__", member)
                code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
                found.update(code.co_names if code is not None else ())
    return found


def make_global_seeds() -> Any:
    """Draws from Python's random numbers."""
    return _module("random.seed_generator").global_seed_generator()


def global_seeds() -> Any:
    """What operations of Keras draw from that were given no seed; None before the first."""
    return _module("backend.common.global_state").get_global_attribute("global_seed_generator")
