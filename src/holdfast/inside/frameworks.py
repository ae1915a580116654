"""Every framework that Holdfast knows, a row each: what is to be known of it outside its own folder.

Adding one takes a row here and, where its steps are taken over, a folder `inside/NAME/` with an `adapter.py` that has
`install(recorder)`. The bootstrap runs this file in every Python the job starts, so it imports nothing.
"""


class Framework:
    """`module` is what scripts import, and the framework's name everywhere in the record."""

    __slots__ = (
        "counts_steps",
        "imported_on_purpose",
        "library",
        "log_words",
        "module",
        "remedies_of",
        "title",
        "trainers",
    )

    def __init__(
        self,
        module: str,
        title: str,
        *,
        counts_steps: bool = False,
        library: bytes = b"",
        log_words: tuple[str, ...] = (),
        remedies_of: str = "",
        trainers: tuple[tuple[str, str], ...] = (),
        imported_on_purpose: bool = True,
    ) -> None:
        self.module = module
        self.title = title
        self.counts_steps = counts_steps  # it has an adapter, which sees every training step
        self.library = library  # in the path of a shared library that it maps, seen from outside the process
        self.log_words = log_words  # that its logs have, and those of other frameworks have not
        self.remedies_of = remedies_of or module  # the framework whose remedies fit
        self.trainers = trainers  # a module that completes a trainer built on it, and the file for it in the folder
        self.imported_on_purpose = imported_on_purpose  # False: other frameworks import it, too


_LIGHTNING = tuple(
    (package + module, file)
    for package in ("lightning.pytorch", "pytorch_lightning")
    for module, file in (
        (".loops.optimization.automatic", "lightning_trainer"),
        (".loops.training_epoch_loop", "lightning_resume"),
        (".core.module", "logged_metrics"),
    )
)

# TensorFlow before Keras: `attach` takes up in this order what is imported already.
FRAMEWORKS = (
    Framework(
        "tensorflow",
        "TensorFlow",
        counts_steps=True,
        library=b"libtensorflow_",
        log_words=("tensorflow", "keras", "tf.data", "Epoch 1/", "ResourceExhaustedError", "ms/step", "of layer "),
    ),
    Framework(
        "torch",
        "PyTorch",
        counts_steps=True,
        library=b"libtorch",
        log_words=("torch", "pytorch", "DataLoader", "NCCL", "lightning", "state_dict", "CUDA error:", "c10"),
        trainers=(("transformers.trainer", "hf_trainer"), *_LIGHTNING),
    ),
    Framework("keras", "Keras", counts_steps=True, remedies_of="tensorflow"),
    Framework(
        "jax",
        "JAX",
        library=b"jaxlib",
        log_words=("jaxlib", "jax/", "jax.", "XlaRuntimeError", "flax"),
        imported_on_purpose=False,  # TensorFlow imports it where it is installed
    ),
)
BY_MODULE = {framework.module: framework for framework in FRAMEWORKS}
TRAINERS = {module: (framework.module, file) for framework in FRAMEWORKS for module, file in framework.trainers}
IMPORTS = (*BY_MODULE, *TRAINERS)  # the modules whose import is waited for
