"""What is said of packages that do not fit each other: more than stands well beside the cause's record."""

from __future__ import annotations

from holdfast.causes.form import near, says

VERSIONS = (
    says(
        r"requires? [\w.\[\]-]+ ?(?:[<>!~]=?|==) ?[\d.]+[^\n]{0,60}but (?:you have|found|got)",
        near("tensorflow 2.21.0", "requires shift = 0 for all input data types that are not int32_t, but got: 3"),
        (
            "pip 23.2.1",
            "tensorflow-intel 2.13.0 requires numpy<=1.24.3,>=1.22, but you have numpy 1.26.4 which is incompatible.",
        ),
    ),
    says(
        "is required for a normal functioning of this module",
        (
            "transformers 5.22.2",
            "ImportError: tokenizers>=0.23.1,<0.24.0 is required for a normal functioning of this module, but found tokenizers==0.21.1.",
        ),
    ),
    says(
        "VersionConflict",
        (
            "setuptools 40.6.2",
            "pkg_resources.VersionConflict: (setuptools 40.6.2 (/usr/lib/python3.7/site-packages), Requirement.parse('setuptools>=41.0.0'))",
        ),
    ),
    says(
        "No package metadata was found for",
        ("CPython 3.11.7", "PackageNotFoundError: No package metadata was found for apex"),
    ),
    says(
        "DistributionNotFound",
        (
            "setuptools 65",
            "pkg_resources.DistributionNotFound: The 'tensorboard>=2.5.0' distribution was not found and is required by the application",
        ),
    ),
    says(
        "dependency resolver",
        (
            "pip 26.2.1",
            "pip's legacy dependency resolver does not consider dependency conflicts when selecting packages. This behaviour is the source of the following dependency conflicts.",
        ),
    ),
    says(
        "conflicting dependencies",
        (
            "pip 26.2.1",
            "ERROR: Cannot install tensorflow==2.13.0 and typing-extensions==4.9.0 because these package versions have conflicting dependencies.",
        ),
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
    says(
        "expected bytes, Descriptor found",
        ("protobuf 3.6 with tensorflow 1.14", "TypeError: expected bytes, Descriptor found"),
    ),
    says(
        r"google/protobuf/pyext/\w+\.cc:\d+: bad argument",
        ("protobuf 3.20", "SystemError: google/protobuf/pyext/descriptor.cc:358: bad argument to internal function"),
    ),
    says(
        "compiled with different CUDA",
        (
            "torchvision 0.16",
            "RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA major versions. PyTorch has CUDA Version=13.0 and torchvision has CUDA Version=12.8. Please reinstall the torchvision that matches your PyTorch install.",
        ),
    ),
    says(
        r"operator torchvision::\w+ does not exist",
        ("torchvision 0.20", "RuntimeError: operator torchvision::nms does not exist"),
    ),
    says(
        "No such operator torchvision::",
        ("torchvision 0.5", "RuntimeError: No such operator torchvision::nms"),
    ),
    says(
        r"Couldn't load custom C\+\+ ops",
        (
            "torchvision 0.15",
            "RuntimeError: Couldn't load custom C++ ops. This can happen if your PyTorch and torchvision versions are incompatible, or if you had errors while compiling torchvision from source.",
        ),
    ),
    says(
        "Keras requires TensorFlow",
        (
            "keras 2.4",
            "ImportError: Keras requires TensorFlow 2.2 or higher. Install TensorFlow via `pip install tensorflow`",
        ),
    ),
    says(
        "is newer than and incompatible with jax version",
        ("jax 0.10.2", "is newer than and incompatible with jax version"),
    ),
    says(
        "jaxlib is version",
        ("jax 0.10.2", "RuntimeError: jaxlib is version 0.4.25, but this version of jax requires version >= 0.10.1."),
    ),
    says(
        "compiled against (?:API|ABI) version",
        (
            "h5py 3.14.0",
            "RuntimeError: module compiled against ABI version 0x1000009 but this version of numpy is 0x2000000",
        ),
    ),
    says(
        "size changed, may indicate binary incompatibility",
        (
            "Cython 0.29",
            "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header, got 88 from PyObject",
        ),
    ),
    says("multiarray failed to import", ("h5py 3.14.0", "ImportError: numpy._core.multiarray failed to import")),
    says(
        "compiled using NumPy 1",
        ("numpy 2.4.6", "A module that was compiled using NumPy 1.x cannot be run in\n            NumPy"),
    ),
    says("Numpy is not available", ("torch 2.13.0", "RuntimeError: Numpy is not available")),
    says("_ARRAY_API not found", ("numpy 2.0 with opencv-python 4.9", "AttributeError: _ARRAY_API not found")),
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
            "RuntimeError: \nThe detected CUDA version (11.8) mismatches the version that was used to compile\nPyTorch (12.1). Please make sure to use the same CUDA versions.\n",
        ),
    ),
    says(
        r"does not match the version torch was compiled with [\d.]+, unable",
        (
            "deepspeed 0.14",
            "deepspeed.ops.op_builder.builder.CUDAMismatchException: >- DeepSpeed Op Builder: Installed CUDA version 11.7 does not match the version torch was compiled with 12.1, unable to compile cuda/cpp extensions without a matching cuda version.",
        ),
        near(
            "deepspeed 0.14",
            "Installed CUDA version 12.6 does not match the version torch was compiled with 12.4 but since the APIs are compatible, accepting this combination",
        ),
    ),
    says(
        r"requires `?\w[\w.-]{0,40}[<>=]=?[\d.]+`?: Please run",
        (
            "transformers 5.22.2",
            "ImportError: Using the `Trainer` with `PyTorch` requires `accelerate>=1.1.0`: Please run `pip install transformers[torch]` or `pip install 'accelerate>=1.1.0'`",
        ),
    ),
    says(
        "Cannot convert a symbolic Tensor .{0,120}to a numpy array",
        (
            "tensorflow 2.4 with numpy 1.20",
            "NotImplementedError: Cannot convert a symbolic Tensor (lstm_2/strided_slice:0) to a numpy array. This error may indicate that you're trying to pass a Tensor to a NumPy call, which is not supported",
        ),
        near(
            "tensorflow 2.21.0",
            "NotImplementedError: Cannot convert a symbolic tf.Tensor (x:0) to a numpy array. This error may indicate that you're trying to pass a Tensor to a NumPy call, which is not supported.",
        ),
    ),
    says("unsupported pickle protocol", ("CPython 3.11.7", "ValueError: unsupported pickle protocol: 9")),
    says("bad marshal data", ("keras 2.2 on CPython 3.7", "ValueError: bad marshal data (unknown type code)")),
    says(
        r"numpy\.core\.umath failed",
        ("tensorflow 2.7 with numpy 1.19", "ImportError: numpy.core.umath failed to import"),
    ),
    says("Numba needs NumPy", ("numba 0.61", "ImportError: Numba needs NumPy 2.2 or less. Got NumPy 2.3.")),
)
