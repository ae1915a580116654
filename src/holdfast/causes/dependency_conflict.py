from __future__ import annotations

from holdfast.causes.form import CauseRecord, near, rule, says, shell

ABSENT_MODULE = r"No module named '(?:{})[.']"
OTHER_NAMES = {  # modules whose package is called otherwise
    "cv2": "opencv-python-headless",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "yaml": "pyyaml",
    "tensorflow_addons": "tensorflow-addons",
    "torch_geometric": "torch-geometric",
    "pytorch_lightning": "pytorch-lightning",
    "mpl_toolkits": "matplotlib",
}
ABSENT = (
    says(
        r"^\W*(?:\w+Error: )?(?:Could not import [\w.]+|Missing optional dependency)",
        ("keras 3.15.1", "ImportError: Could not import PIL.Image. The use of `load_img` requires PIL."),
    ),
    says(
        r"""\brequires (?:the )?[`'\"]?[\w.-]+[`'\"]?(?: package| library)? (?:to be installed|but it was not found)""",
        (
            "transformers 5.22.2",
            "ImportError: \nAutoImageProcessor requires the PIL library but it was not found in your environment. You can install it with pip:\n`pip install pillow`. Please note that you may need to restart your runtime after installation.\n",
        ),
    ),
    says(
        r"\b(?:is|are) not installed\b",
        (
            "accelerate 1.15.0",
            "ImportError: DeepSpeed is not installed => run `pip3 install deepspeed` or build it from source.",
        ),
    ),
    says(
        "[Pp]lease (?:pip )?install ",
        (
            "huggingface-hub 2.4.0",
            "ImportError: Please install `torch` to load torch tensors. You can install it with `pip install torch`.",
        ),
    ),
)
VERSIONS = (
    says(
        r"requires? [\w.\[\]-]+ ?(?:[<>!~]=?|==) ?[\d.]+[^\n]{0,60}but (?:you have|found|got)",
        near("tensorflow 2.21.0", "requires shift = 0 for all input data types that are not int32_t, but got: 3"),
    ),
    says(
        "is required for a normal functioning of this module",
        ("transformers 5.22.2", "3 is required for a normal functioning of this module, but found 3==3.3"),
    ),
    "VersionConflict",
    says(
        "No package metadata was found for",
        ("CPython 3.11.7", "PackageNotFoundError: No package metadata was found for apex"),
    ),
    says("DistributionNotFound", ("pip 26.2.1", "DistributionNotFound: No matching distribution found for 3")),
    says(
        "dependency resolver",
        (
            "pip 26.2.1",
            "pip's legacy dependency resolver does not consider dependency conflicts when selecting packages. This behaviour is the source of the following dependency conflicts.",
        ),
    ),
    says(
        "conflicting dependencies",
        ("pip 26.2.1", "Cannot install 3 because these package versions have conflicting dependencies."),
    ),
    says(
        "ResolutionImpossible",
        (
            "pip 26.2.1",
            "ResolutionImpossible: for help visit https://pip.pypa.io/en/latest/topics/dependency-resolution/#dealing-with-dependency-conflicts",
        ),
    ),
    says(
        "Descriptors (?:cannot|should not) (?:not )?be created directly",
        ("protobuf 7.36.2", "Descriptors cannot be created directly."),
    ),
    says("Downgrade the protobuf", ("protobuf 7.36.2", "1. Downgrade the protobuf package to 3.20.x or lower.")),
    "expected bytes, Descriptor found",
    r"google/protobuf/pyext/\w+\.cc:\d+: bad argument",
    "compiled with different CUDA",
    r"operator torchvision::\w+ does not exist",
    r"Couldn't load custom C\+\+ ops",
    "(?:torchvision|torchaudio).{0,60}(?:incompatible|compiled)",
    "Keras requires TensorFlow",
    "not yet supported in Transformers",
    says(
        "is newer than and incompatible with jax version",
        ("jax 0.10.2", "is newer than and incompatible with jax version"),
    ),
    "jaxlib version .{0,40}incompatible",
    says("jaxlib is version", ("jax 0.10.2", "jaxlib is version 3, but this version of jax requires version >= 3.")),
    says(
        "compiled against (?:API|ABI) version",
        ("h5py 3.14.0", "module compiled against ABI version 0x3 but this version of numpy is 0x3"),
    ),
    says(
        "size changed, may indicate binary incompatibility",
        (
            "aiohttp 3.14.5",
            "dense.dense size changed, may indicate binary incompatibility. Expected 3 from C header, got 3 from PyObject",
        ),
    ),
    says("multiarray failed to import", ("h5py 3.14.0", "numpy._core.multiarray failed to import")),
    says(
        "compiled using NumPy 1",
        ("numpy 2.4.6", "A module that was compiled using NumPy 1.x cannot be run in\n            NumPy"),
    ),
    says("Numpy is not available", ("torch 2.13.0", "Numpy is not available")),
    "_ARRAY_API not found",
    says(
        r"requires the (?:PyTorch|TensorFlow|\w+) library but it was not found",
        (
            "transformers 5.22.2",
            "ImportError: \nAutoImageProcessor requires the PIL library but it was not found in your environment. You can install it with pip:\n`pip install pillow`. Please note that you may need to restart your runtime after installation.\n",
        ),
    ),
    says(
        "Unable to import required dependenc",
        (
            "pandas v3.1.0.dev0",
            "ImportError: Unable to import required dependency 3. Please see the traceback for details.",
        ),
    ),
    says(
        "you (?:need|must) (?:to )?(?:install|upgrade|downgrade)",
        (
            "keras 3.15.1",
            "ImportError: To load models from the Hugging Face Hub, you must install the `huggingface_hub` package.",
        ),
    ),
    says(
        r"""[Pp]lease (?:install|upgrade|downgrade|update) [`'\"]?\w+""",
        (
            "huggingface-hub 2.4.0",
            "ImportError: Please install `torch` to load torch tensors. You can install it with `pip install torch`.",
        ),
    ),
    says(
        "(?:is )?incompatible (?:with (?:the )?)?(?:installed )?version",
        (
            "torch 2.13.0",
            "Looks like your LD_LIBRARY_PATH contains incompatible version of cudnn. Please either remove it from the path or install cudnn",
        ),
    ),
    says(
        "detected CUDA version .{0,40}mismatches the version",
        (
            "torch 2.13.0",
            "The detected CUDA version (dense) mismatches the version that was used to compilePyTorch (dense). Please make sure to use the same CUDA versions.",
        ),
    ),
    "does not match the version torch was compiled with",
    says(
        r"requires `?\w[\w.-]{0,40}[<>=]=?[\d.]+`?: Please run",
        (
            "transformers 5.22.2",
            "ImportError: Using the `Trainer` with `PyTorch` requires `accelerate>=3`: Please run `pip install transformers[torch]` or `pip install 'accelerate>=3'`",
        ),
    ),
    "Cannot convert a symbolic Tensor .{0,120}to a numpy array",
    says("unsupported pickle protocol", ("CPython 3.11.7", "ValueError: unsupported pickle protocol: 9")),
    "bad marshal data",
    r"The installed version of \S+ .{0,60}(?:is|does)",
    r"numpy\.core\.(?:multiarray|umath) failed",
    "Numba needs NumPy",
)
NCCL_VERSIONS = (
    says(
        "Mismatched NCCL version detected",
        (
            "nccl nccl4py-v0.3.1",
            "node1:4242:4242 [0] NCCL WARN Mismatched NCCL version detected : rank 3 version 3 rank 3 version 3",
        ),
    ),
    says(
        "NCCL version mismatch with",
        (
            "nccl nccl4py-v0.3.1",
            "node1:4242:4242 [0] NCCL WARN NCCL version mismatch with remote peer dense (local: dense, remote dense)",
        ),
    ),
    says(
        "compiled with NCCL version .{0,80}but is running",
        (
            "nccl nccl4py-v0.3.1",
            "NCCL library is too old. This application was compiled with NCCL version dense, but is running with NCCL",
        ),
    ),
)
NEWER = (
    r"(?:requires?|needs?) [`']?\w[\w.-]{1,30}[`']? ?(?:version )?(?:[<>=~]=? ?)?v?\d+(?:\.\d+)*(?: or (?:higher|newer|above|later|greater)|\b.{0,40}(?:installed|current|found|but|got))",
    "(?:not|un)supported (?:by|in|with) (?:this|your|the (?:current|installed)) version",
    says(
        "created with a newer version",
        (
            "tensorflow 2.21.0",
            "ValueError: The type 'dense' is not supported by this version of TensorFlow. (The object you are loading must have been created with a newer version of TensorFlow.)",
        ),
    ),
    "saved with an older version",
    "too old of a version",
    says(
        "version .{0,40}is too (?:old|new)",
        (
            "scikit-learn 1.8.0rc1",
            "ImportError: Your version of pytest is too old. Got version 3, you should have pytest >= 3 installed.",
        ),
    ),
    says(
        "(?:is|are|was|were) not (?:installed|found on your system)",
        (
            "accelerate 1.15.0",
            "ImportError: DeepSpeed is not installed => run `pip3 install deepspeed` or build it from source.",
        ),
    ),
    says(
        r"(?:to|must|should) be installed\b",
        (
            "lightning 2.6.6",
            "ModuleNotFoundError: `dense.to_onnx(dynamo=True)` requires `onnxscript` and `torch>=2.5.0` to be installed.",
        ),
    ),
    says(
        "[Tt]ry `?pip install",
        (
            "lightning 2.6.6",
            "ModuleNotFoundError: Neither `tensorboard` nor `tensorboardX` is available. Try `pip install`ing either.\n3\n3",
        ),
    ),
    says(
        r"pip install [\w-]",
        (
            "transformers 5.22.2",
            "ImportError: \nAutoImageProcessor requires the PIL library but it was not found in your environment. You can install it with pip:\n`pip install pillow`. Please note that you may need to restart your runtime after installation.\n",
        ),
    ),
)
CAUSE = CauseRecord(
    id="dependency-conflict",
    family="process",
    title="Installed packages do not fit each other",
    meaning="A package needs another one that is missing, or in another version. The installation has to be mended, not the script.",
    sure="The package and versions that the message names.",
    message_in_title=True,
    of_the_installation=True,
    recipes=(
        *(
            shell("Install it where the run looks", f"python -m pip install {name}", said=ABSENT_MODULE.format(module))
            for module, name in OTHER_NAMES.items()
        ),
        shell(
            "Install it where the run looks",
            "python -m pip install $module",
            said=ABSENT_MODULE.format(r"(?P<module>[a-z]\w*)"),
            unsaid=ABSENT_MODULE.format("|".join(OTHER_NAMES)),
        ),
        shell("See what does not fit", "pip check"),
        shell(
            "Begin with an environment of its own",
            "python -m venv fresh\n./fresh/bin/pip install -r requirements.txt",
        ),
    ),
    exceptions=(
        rule(0.85, *VERSIONS),
        rule(0.62, says("No module named", ("CPython 3.11.7", "ModuleNotFoundError: No module named 'nosuchmodule'"))),
        rule(0.6, r"lib(?:GL|glib|sndfile|gomp|stdc|X)[\w.+-]*: cannot open shared object"),
        rule(0.5, "DLL load failed"),
        rule(
            0.74,
            "descriptor",
            "proto",
            types="TypeError AttributeError SystemError ImportError RuntimeError",
            frames=r"google[/\\]protobuf|_pb2\.py",
        ),
        rule(0.82, *ABSENT, types="ImportError ModuleNotFoundError"),
        rule(0.7, "^KeyError: '[a-z]", types="KeyError", frames="configuration_auto|tokenization_auto"),
        rule(0.66, r"Tokenizer class \w+ does not exist or is not currently imported"),
        rule(0.72, *NEWER, unless="driver|compute capability|file|GPU"),
        rule(
            0.68,
            says(
                r"\b\w+ is required to load C\+\+ extensions",
                (
                    "torch 2.13.0",
                    "RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)",
                ),
            ),
            r"\bversions?\b.{0,80}\b(?:mismatch(?:es)?|incompatib\w+|conflicts?|not compatible)",
            unless="driver|kernel version|cuDNN",
        ),
    ),
    lines=(
        rule(0.8, *VERSIONS),
        rule(
            0.6,
            says(
                "pip's dependency resolver",
                (
                    "pip 26.2.1",
                    "pip's dependency resolver does not currently take into account all the packages that are installed. This behaviour is the source of the following dependency conflicts.",
                ),
            ),
            says(
                "which is incompatible(?! to)",
                near(
                    "transformers 5.22.2",
                    "You passed `num_labels=3` which is incompatible to the `id2label` map of length `2`.",
                ),
            ),
        ),
        rule(0.72, r"fatal error: [\w/.+-]{1,80}\.(?:h|hpp|cuh): No such file"),
        rule(
            0.6,
            says("Error compiling objects for extension", ("torch 2.13.0", "Error compiling objects for extension")),
            r"error: command '\S*(?:gcc|g\+\+|nvcc|cl\.exe)\S*' failed",
            says("Failed building wheel for", ("pip 26.2.1", "Failed building wheel for dense")),
        ),
        rule(0.9, *NCCL_VERSIONS),
    ),
)
