"""PyTorch's private names, and those of the trainers on top of it, all of them. `python -m tests.compatibility`
looks for them in other versions."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from ..seams import CHECKPOINT, DETAIL, RESCUE, RESUME, TELEMETRY, Seam
from ..user_errors import show_without_ours

SEEN = "2.1 to 2.15"
_LOADER = "torch.utils.data.dataloader"
OF_TORCH = (
    Seam("torch.optim.optimizer", "Optimizer.step", (TELEMETRY, CHECKPOINT, RESUME, RESCUE)),
    Seam("torch.optim.optimizer", "Optimizer.zero_grad", (CHECKPOINT, RESUME)),
    Seam(_LOADER, "DataLoader.__iter__", (TELEMETRY, CHECKPOINT, RESUME)),
    Seam(_LOADER, "_BaseDataLoaderIter.__next__", (TELEMETRY, CHECKPOINT, RESUME)),
    Seam(_LOADER, "DataLoader", (CHECKPOINT, RESUME), assigned="_dataset_kind"),
    Seam(_LOADER, "DataLoader", (CHECKPOINT, RESUME), assigned="_iterator"),
    Seam(_LOADER, "_BaseDataLoaderIter", (CHECKPOINT, RESUME), assigned="_sampler_iter"),
    Seam(_LOADER, "_BaseDataLoaderIter", (RESUME,), assigned="_num_yielded"),
    Seam(_LOADER, "_BaseDataLoaderIter._next_index", (RESUME,)),
    Seam(_LOADER, "_DatasetKind.create_fetcher", (DETAIL,)),
    Seam("torch.nn.modules.module", "Module", (CHECKPOINT, RESUME), assigned="_modules"),
    Seam("torch.nn.modules.module", "Module", (CHECKPOINT, RESUME), assigned="_parameters"),
    Seam("torch", "Tensor.backward", (TELEMETRY, CHECKPOINT, RESUME, RESCUE)),
    Seam("torch", "Tensor._version", (RESCUE,)),
    Seam("torch", "Tensor._backward_hooks", (RESCUE,)),
    Seam("torch.autograd", "_get_sequence_nr", (RESCUE,)),
    Seam("torch.autograd.graph", "Node", (RESCUE,)),
    Seam("torch.nn.modules.module", "Module", (RESCUE,), assigned="_forward_hooks"),
    Seam("torch.nn.modules.module", "Module", (RESCUE,), assigned="_backward_hooks"),
    Seam("torch.nn.modules.module", "Module", (RESCUE,), assigned="_forward_pre_hooks"),
    Seam("torch.nn.modules.module", "Module", (RESCUE,), assigned="_buffers"),
    Seam("torch.nn.modules.batchnorm", "_NormBase", (RESCUE,)),
    Seam("torch.cuda", "_lazy_call", (RESCUE,)),
    Seam("torch.utils._python_dispatch", "TorchDispatchMode", (RESCUE,)),
    Seam("torch.distributed.distributed_c10d", "_world", (DETAIL,)),
    Seam("torch.nn.parallel.distributed", "DistributedDataParallel", (DETAIL,), assigned="_comm_hooks"),
    Seam("torch.nn.modules.module", "Module._call_impl", (DETAIL,)),
    Seam("torch.nn.modules.module", "Module", (DETAIL,), assigned="_compiled_call_impl"),
    Seam("torch", "_foreach_norm", (DETAIL,)),
    Seam("torch", "_foreach_copy_", (DETAIL,)),
    Seam("torch.cuda", "_device_count_nvml", (DETAIL,)),
    Seam("torch.autograd", "_unsafe_preserve_version_counter", (DETAIL,)),
)
MODULE_PARTS = ("_parameters", "_buffers", "_modules")  # of a module, beside what its author gave it
FETCHERS = "_DatasetKind"  # makes what a worker fetches an epoch's batches with
LAYERS = (MODULES, PARAMETERS) = ("_modules", "_parameters")
HOOKS = "_hooks"  # in the names of attributes that hold them, of modules and optimizers
SAVED_TENSORS = "_saved_"  # the same, unpacked when they are asked for
SAVED_FOR_BACKWARD = "_raw_saved_"  # how attributes of a node in autograd's graph begin


def taken_over_call(original: Callable[..., Any], leave_alone: Callable[[], bool], here: Any, outermost: Any) -> Any:
    """The call of a module, of which `outermost` is done instead where `here` is not inside of one already: an error of an inner call
    comes out of the outermost one. A model has tens of inner calls a step: where PyTorch's own does nothing but to choose
    what to call, that is done here, and each of them takes a frame less."""

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if leave_alone() or here.inside:
            return original(self, *args, **kwargs)
        try:
            return outermost(self, args, kwargs)
        except BaseException as error:
            show_without_ours(error)
            raise

    def shorter(self: Any, *args: Any, **kwargs: Any) -> Any:
        if leave_alone():
            return original(self, *args, **kwargs)
        if here.inside:
            if self._compiled_call_impl is None:
                return self._call_impl(*args, **kwargs)
            return original(self, *args, **kwargs)
        try:
            return outermost(self, args, kwargs)
        except BaseException as error:
            show_without_ours(error)
            raise

    names = getattr(getattr(original, "__code__", None), "co_names", ())
    return shorter if set(names) == {"_compiled_call_impl", "_call_impl"} else __call__


def loader_module() -> Any:
    return sys.modules.get(_LOADER)


def loader_iterator_class() -> Any:
    return getattr(loader_module(), "_BaseDataLoaderIter", None)


def is_map_style(loader: Any) -> bool:
    return loader._dataset_kind == 0  # type: ignore[no-any-return]


def kept_iterator(loader: Any) -> Any:
    """Of workers that persist from epoch to epoch."""
    return getattr(loader, "_iterator", None)


def keep_iterator(loader: Any, iterator: Any) -> None:
    loader._iterator = iterator


def follow_indices(iterator: Any, followed: Callable[[Any], Any]) -> None:
    iterator._sampler_iter = followed(iterator._sampler_iter)


def skip_batch(iterator: Any) -> None:
    """Its indices are drawn, nothing is read. StopIteration where there is none."""
    iterator._next_index()
    iterator._num_yielded += 1


def scheduler_classes() -> List[Any]:
    module = sys.modules.get("torch.optim.lr_scheduler")
    return [getattr(module, name, None) for name in ("LRScheduler", "_LRScheduler", "ReduceLROnPlateau")]


def scaler_class() -> Any:
    module = sys.modules.get("torch.amp.grad_scaler") or sys.modules.get("torch.cuda.amp.grad_scaler")
    return getattr(module, "GradScaler", None)


def loss_scale(scaler: Any) -> Any:
    """As a tensor on its device; None where it does not scale, or keeps it elsewhere."""
    return getattr(scaler, "_scale", None)


def compile_callbacks() -> Any:
    """None until the compiler is loaded: it is never imported from here."""
    return getattr(sys.modules.get("torch._dynamo.callback"), "callback_handler", None)


# -- tensors and autograd


def version_of(tensor: Any) -> int:
    """Counts what was written into it in place."""
    return tensor._version  # type: ignore[no-any-return]


def next_node_number(torch: Any) -> Callable[[], int]:
    return torch.autograd._get_sequence_nr  # type: ignore[no-any-return]


def node_number(node: Any) -> int:
    return int(node._sequence_nr())


@contextlib.contextmanager
def versions_kept(torch: Any, tensors: Iterable[Any]) -> Iterator[None]:
    preserve: Any = getattr(torch.autograd, "_unsafe_preserve_version_counter", contextlib.nullcontext)
    with contextlib.ExitStack() as stack:
        for tensor in tensors:
            stack.enter_context(preserve(tensor))
        yield


def copy_all(torch: Any, sources: List[Any], targets: List[Any]) -> None:
    if hasattr(torch, "_foreach_copy_"):
        torch._foreach_copy_(targets, sources)
        return
    for source, target in zip(sources, targets):
        target.copy_(source)


def norms_of(torch: Any, tensors: List[Any]) -> Optional[List[Any]]:
    """In one call of the device; None where this PyTorch has none."""
    return list(torch._foreach_norm(tensors)) if hasattr(torch, "_foreach_norm") else None


def is_transformed(torch: Any) -> bool:
    """Within a function of torch.func, whose tensors stand for others."""
    return getattr(getattr(getattr(torch, "_C", 0), "_functorch", 0), "maybe_current_level", lambda: None)() is not None


# -- modules and parameters


def buffers_of(module: Any) -> Any:
    """Its own, without those of the modules in it."""
    return module._buffers


def is_compiled(module: Any) -> bool:
    return type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None


def has_hooks(module: Any) -> bool:
    return bool(module._forward_hooks or module._backward_hooks)


def hooks_on_inputs(module: Any) -> List[Any]:
    return list(module._forward_pre_hooks.values())


def is_updated_in_backward(parameter: Any) -> bool:
    return bool(getattr(parameter, "_post_accumulate_grad_hooks", None))


def has_gradient_hooks(parameter: Any) -> bool:
    return bool(parameter._backward_hooks)


def norm_class(torch: Any) -> Any:
    return torch.nn.modules.batchnorm._NormBase


# -- CUDA, without starting it


def once_cuda_starts(torch: Any, call: Callable[[], Any]) -> None:
    torch.cuda._lazy_call(call)


def gpu_count(torch: Any) -> Optional[int]:
    """Asked of NVML; None where this PyTorch cannot."""
    count = getattr(torch.cuda, "_device_count_nvml", None)
    return None if count is None else int(count())


# -- Lightning, torchmetrics, Hugging Face

LIGHTNING_SEEN, HF_SEEN = "2.1 to 2.6", "4.40 to 5.23"
HF_PATHS, HF_CALLBACKS = "transformers.trainer_utils", "transformers.trainer_callback"
ACCELERATE_LOADERS, INNER_LOADER = "accelerate.data_loader", "base_dataloader"  # one batch ahead of the loop
_HF_STATE = ("TrainerState", "TrainerControl", "TrainerCallback", "ProgressCallback")
LIGHTNING_STEP = "_training_step"  # of the loop that optimizes by itself
LIGHTNING_HOOK = "_current_fx_name"  # of a LightningModule: the hook it takes itself to be in
_OF_A_METRIC = frozenset({"_update_count", "_computed", "_forward_cache", "_update_called"})


def lightning_step(module: str) -> Tuple[Seam, ...]:
    return (Seam(module, "_AutomaticOptimization._training_step", (RESCUE,)),)


def of_lightning(module: str) -> Tuple[Seam, ...]:
    package = module.split(".loops.", 1)[0]
    return (
        *lightning_step(module),
        Seam(f"{package}.core.module", "LightningModule", (RESCUE,), assigned=LIGHTNING_HOOK),
        Seam(f"{package}.trainer.trainer", "Trainer._results", (RESCUE,)),
    )


def of_hf(module: str) -> Tuple[Seam, ...]:
    both = (CHECKPOINT, RESUME)
    return (
        Seam(module, "Trainer.train", (RESCUE, *both)),
        Seam(module, "Trainer.compute_loss", (RESCUE,)),
        *(Seam(HF_CALLBACKS, name, both) for name in _HF_STATE),
        Seam(HF_PATHS, "get_last_checkpoint", both),
        Seam(ACCELERATE_LOADERS, "DataLoaderShard.__iter__", both),
        Seam("accelerate.accelerator", "Accelerator", both, assigned="gradient_state"),
        Seam("accelerate.state", "GradientState", both),
    )


def lightning_loop_class(module: str) -> Any:
    return sys.modules[module]._AutomaticOptimization


# What is kept of a Lightning run. Attributes that are keyed by addresses in memory hold for one process only.
BY_ADDRESS = ("_metric_attributes",)
TRAINER_STATE = ("callbacks", "fit_loop", "_logger_connector", "_accelerator_connector")
STRATEGY_STATE = (
    "_optimizers", "_lightning_optimizers", "lr_scheduler_configs", "_lightning_module", "_precision_plugin",
)  # fmt: skip


VALIDATION_DATA = ("_data_fetcher", "_combined_loader", "_data_source")  # gone through from its beginning each time


class LightningClasses(NamedTuple):
    values: Tuple[Any, ...]  # all attributes are state
    evaluation: Any
    loop: Any
    fetcher: Any
    combined: Any
    combination: Any
    trainer: Any
    module: Any
    data_module: Any
    progress_bar: Any
    connector: Any
    strategy: Any
    precision: Any


_EPOCH_LOOP = "loops.training_epoch_loop"
_LOGGED = "trainer.connectors.logger_connector"
_LIGHTNING_CLASSES = {
    "values": (
        ("loops.progress", "_BaseProgress"), (f"{_LOGGED}.result", "_ResultCollection"), (f"{_LOGGED}.result", "_Metadata"),
        (f"{_LOGGED}.result", "_Sync"), (f"{_LOGGED}.logger_connector", "_LoggerConnector"),
        ("utilities.types", "LRSchedulerConfig"),
    ),
    "evaluation": (("loops.evaluation_loop", "_EvaluationLoop"),),
    "loop": (("loops.loop", "_Loop"),),
    "fetcher": (("loops.fetchers", "_DataFetcher"),),
    "combined": (("utilities.combined_loader", "CombinedLoader"),),
    "combination": (("utilities.combined_loader", "_ModeIterator"),),
    "trainer": (("trainer.trainer", "Trainer"),),
    "module": (("core.module", "LightningModule"),),
    "data_module": (("core.datamodule", "LightningDataModule"),),
    "progress_bar": (("callbacks.progress.progress_bar", "ProgressBar"),),
    "connector": (("trainer.connectors.accelerator_connector", "_AcceleratorConnector"),),
    "strategy": (("strategies.strategy", "Strategy"),),
    "precision": (("plugins.precision.precision", "Precision"),),
}  # fmt: skip


def lightning_state(package: str) -> Tuple[Seam, ...]:
    both = (CHECKPOINT, RESUME)
    listed = [one for group in _LIGHTNING_CLASSES.values() for one in group]
    return (
        *(Seam(f"{package}.{module}", name, both) for module, name in listed),
        Seam(f"{package}.{_EPOCH_LOOP}", "_TrainingEpochLoop.advance", both),
        Seam(f"{package}.{_EPOCH_LOOP}", "_TrainingEpochLoop.run", both),
        Seam(f"{package}.loops.fit_loop", "_FitLoop", both, assigned="_combined_loader"),
        Seam(f"{package}.utilities.combined_loader", "CombinedLoader", both, assigned="_iterator"),
        *(
            Seam(f"{package}.trainer.trainer", "Trainer", both, assigned=name)
            for name in TRAINER_STATE
            if name[0] == "_"
        ),
        *(Seam(f"{package}.strategies.strategy", "Strategy", both, assigned=name) for name in STRATEGY_STATE),
        *(Seam(f"{package}.core.module", "LightningModule", both, assigned=name) for name in BY_ADDRESS),
    )


def lightning_classes(package: str) -> LightningClasses:
    def found(module: str, name: str) -> Any:
        return getattr(sys.modules[f"{package}.{module}"], name)

    kinds = {role: tuple(found(*one) for one in listed) for role, listed in _LIGHTNING_CLASSES.items()}
    return LightningClasses(kinds.pop("values"), **{role: one for role, (one,) in kinds.items()})


def lightning_epoch_loop(module: str) -> Any:
    return sys.modules[module]._TrainingEpochLoop


def training_iterators(trainer: Any) -> List[Any]:
    """Those its epoch asks for batches."""
    combined = trainer.fit_loop._combined_loader
    iterator = getattr(combined, "_iterator", None)
    return list(getattr(iterator, "iterators", ()))


def lightning_results(trainer: Any) -> Any:
    """What was logged in the loop that is under way; None outside of one."""
    return trainer._results


def updates_of(metric: Any) -> int:
    return int(metric._update_count)


def begin_module(made: Any) -> None:
    """One that was made without its `__init__`: a metric wraps its methods as one that was unpickled does, and a module of
    Lightning's has no trainer yet."""
    if hasattr(made, "_wrap_update") and hasattr(made, "__setstate__"):
        made.__setstate__({})
    elif hasattr(type(made), "configure_optimizers"):
        vars(made)["_trainer"] = None


def is_metric(value: Any) -> bool:
    return hasattr(value, "_update_count") and hasattr(value, "_defaults")


def states_of_metric(metric: Any) -> Any:
    """Names of the attributes that change with each batch."""
    return _OF_A_METRIC | set(metric._defaults)


def accelerate_classes() -> Tuple[Any, Any]:
    accelerator: Any = sys.modules["accelerate.accelerator"]
    state: Any = sys.modules["accelerate.state"]
    return accelerator.Accelerator, state.GradientState


def accelerate_loader() -> Any:
    module: Any = sys.modules[ACCELERATE_LOADERS]
    return module.DataLoaderShard


def is_one_ahead(code: Tuple[str, str, int]) -> bool:
    """The code, by file and name, that asks the loader for the batch after the one it is about to give."""
    return code[:2] == ("data_loader.py", "DataLoaderShard.__iter__")


def is_wrapped_loader(value: Any) -> bool:
    return type(value).__module__ == ACCELERATE_LOADERS and INNER_LOADER in vars(value)
