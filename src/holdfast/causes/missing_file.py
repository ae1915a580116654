from __future__ import annotations

from holdfast.causes.form import CauseRecord, near, rule, says, words

NAMED_FILE = r"(?:filepath=|File not found: )(?!filepath=)(?P<named>[^\s,;'\"]+?)[.,]?(?:\s|$)"
OFFLINE = "couldn't connect to|[Cc]heck your (?:internet )?connection|Internet connection is on"
MISSING = (
    says(
        "No such file or directory",
        (
            "tensorflow 2.21.0",
            "NotFoundError: {{function_node __wrapped__ReadFile_device_/job:localhost/replica:0/task:0/device:CPU:0}} no.txt; No such file or directory [Op:ReadFile]",
        ),
        near(
            "h5py 3.14.0",
            "PermissionError: [Errno 13] Unable to synchronously open file (unable to open file: name = 'w.h5', errno = 13, error message = 'Permission denied', flags = 0, o_flags = 0)",
        ),
    ),
    says(
        r"\[Errno 2\]",
        (
            "CPython 3.11.7 with glibc 2.42, translated",
            "FileNotFoundError: [Errno 2] Datei oder Verzeichnis nicht gefunden: 'a.npy'",
        ),
    ),
    says(
        "Failed to find any matching files",
        (
            "tensorflow 2.21.0",
            "NotFoundError: Unsuccessful TensorSliceReader constructor: Failed to find any matching files for nothing",
        ),
    ),
    says(
        "does not appear to have a file named",
        (
            "transformers 5.22.2",
            "OSError: ./output/checkpoint-500 does not appear to have a file named pytorch_model.bin or model.safetensors.",
        ),
    ),
    says(
        "File not found",
        (
            "keras 3.15.1",
            "ValueError: File not found: filepath=c.keras. Please ensure the file is an accessible `.keras` zip file.",
        ),
    ),
    says(
        "(?:file|directory|path|folder) .{0,160}(?:does not|doesn't) exist",
        ("torch 2.13.0", "RuntimeError: Parent directory /nonexistent does not exist."),
    ),
    says(
        "Can't load (?:the )?(?:tokenizer|config|model|image processor|feature extractor|weights)",
        (
            "transformers 5.22.2",
            "OSError: Can't load the configuration of './output/checkpoint-500'. If you were trying to load it from 'https://huggingface.co/models', make sure you don't have a local directory with the same name. Otherwise, make sure './output/checkpoint-500' is the correct path to a directory containing a config.json file",
        ),
    ),
    says(
        "Can't find model '",
        (
            "spaCy 3.8",
            "OSError: [E050] Can't find model 'en_core_web_sm'. It doesn't seem to be a Python package or a valid path to a data directory.",
        ),
    ),
    says(
        "No valid checkpoint found in",
        ("transformers 5.22.2", "ValueError: No valid checkpoint found in output directory (out)"),
    ),
    says(
        "is not a valid checkpoint: ",
        ("tensorflow 2.21.0", "ValueError: The passed save_path is not a valid checkpoint: logs/model.ckpt-5000"),
    ),
    says(
        "Can't load save_path when it is None",
        ("tensorflow 2.21.0", "ValueError: Can't load save_path when it is None."),
    ),
    says(
        "No files matched pattern",
        (
            "tensorflow 2.21.0",
            "InvalidArgumentError: Expected 'tf.Tensor(False, shape=(), dtype=bool)' to be true. Summarized data: b'No files matched pattern: data/train-*.tfrecord'",
        ),
    ),
    says(
        "is not a local folder and is not a valid model identifier",
        (
            "transformers 5.22.2",
            "OSError: ./output/best-model is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'\nIf this is a private repository, make sure to pass a token having permission to this repo either by logging in with `hf auth login` or by passing `token=<your_token>`",
        ),
    ),
    says(
        "No file or directory found",
        ("tf-keras v2.21.0", "OSError: No file or directory found at saved_models/best.h5"),
    ),
    says(
        "Couldn't find (?:a dataset|any data|file)",
        (
            "datasets 5.0.1",
            "FileNotFoundError: Couldn't find any data file at /home/user/project/data/train.",
        ),
    ),
    says(
        "cannot find the (?:path|file)",
        (
            "CPython 3.11.7 on Windows",
            "FileNotFoundError: [WinError 3] The system cannot find the path specified: 'data/train'",
        ),
    ),
    says(
        "New(?:RandomAccessFile|ReadOnlyMemoryRegionFromFile) failed to Create/Open(?!.{0,300}Access is denied)",
        (
            "tensorflow 1.13.1 on a French Windows",
            "NotFoundError: NewRandomAccessFile failed to Create/Open: data/object-detection.pbtxt : Le chemin d'accès spécifié est introuvable.\n; No such process",
        ),
        near(
            "tensorflow 2.3 on Windows, of a folder",
            "tensorflow.python.framework.errors_impl.UnknownError: NewRandomAccessFile failed to Create/Open: images/train : Access is denied.\n; Input/output error",
        ),
    ),
    says(
        r"no file named (?:pytorch_model|model\.safetensors|tf_model)",
        (
            "transformers 5.22.2",
            "OSError: Error no file named model.safetensors, or pytorch_model.bin, found in directory ./emp.",
        ),
    ),
    says(
        "Cannot find the requested files",
        (
            "huggingface_hub 2.4.0",
            "LocalEntryNotFoundError: Cannot find the requested files in the disk cache and outgoing traffic has been disabled. To enable hf.co look-ups and downloads online, set 'local_files_only' to False.",
        ),
        near("tensorflow 2.21.0", "ValueError: Cannot find the input tensor with name serving_default_x in the graph."),
    ),
    says("Dataset not found", ("lightning 2.6.6", "RuntimeError: Dataset not found.")),
)
CAUSE = CauseRecord(
    id="missing-file",
    family="data",
    title="A file is not there",
    meaning="The script opened a path that does not exist. Paths are looked up from the directory the run was started in.",
    sure="The system's own error names the path.",
    in_passing=True,
    recipes=(
        words("If it is to be written, make its folder first", 'os.makedirs("$folder", exist_ok=True)'),
        words("If it is to be read, look from the directory the run had", 'ls -l "$path"'),
        words("If it is to be read, look from the directory the run had", 'ls -l "$named"', said=NAMED_FILE),
    ),
    exceptions=(
        # imread gives None where there is no image
        rule(
            0.5,
            says(
                "'NoneType' object has no attribute '(?:shape|astype|copy)'",
                ("CPython 3.11.7", "AttributeError: 'NoneType' object has no attribute 'shape'"),
            ),
            outside=r"\S",
        ),
        rule(
            0.92,
            says(
                "^",
                (
                    "h5py 3.14.0",
                    "FileNotFoundError: [Errno 2] Unable to synchronously open file (unable to open file: name = 'weights/best.h5', errno = 2, error message = 'No such file or directory', flags = 0, o_flags = 0)",
                ),
                ("CPython 3.11.7", "NotADirectoryError: [Errno 20] Not a directory: 'data/labels.csv/train'"),
            ),
            types="FileNotFoundError",
        ),
        rule(
            0.9,
            *MISSING,
            unless="cannot open shared object|dlopen|DLL|Transport endpoint|in checkpoint|from the checkpoint|"
            + OFFLINE,
        ),
        rule(
            0.75,
            "^",
            types="HFValidationError RepositoryNotFoundError EntryNotFoundError LocalEntryNotFoundError DatasetNotFoundError NotADirectoryError IsADirectoryError",
            unless=OFFLINE,
        ),
        rule(
            0.6,
            says(
                "Found 0 (?:files|images)",
                (
                    "torchvision 0.2.1",
                    "RuntimeError: Found 0 files in subfolders of: ./data/CelebA/\nSupported extensions are: .jpg,.jpeg,.png,.ppm,.bmp,.pgm,.tif",
                ),
            ),
            says(
                r"No (?:images|files|data|samples|labels|annotations)\b.{0,40}\b(?:found|in)\b",
                (
                    "keras 3.15.1",
                    "ValueError: No images found in directory .. Allowed formats: ('.bmp', '.gif', '.jpeg', '.jpg', '.png')",
                ),
            ),
            says(
                "num_samples=0",
                ("torch 2.13.0", "ValueError: num_samples should be a positive integer value, but got num_samples=0"),
            ),
        ),
        rule(
            0.6,
            says(
                r"!_src\.empty\(\)",
                (
                    "opencv-python-headless 5.0.0.93",
                    "cv2.error: OpenCV(5.0.0) /io/opencv/modules/imgproc/src/color.cpp:199: error: (-215:Assertion failed) !_src.empty() in function 'cvtColor'",
                ),
            ),
            says(
                "'NoneType' object has no attribute 'shape'",
                (
                    "opencv-python-headless 5.0.0.93",
                    'Traceback (most recent call last):\n  File "train.py", line 5, in <module>\n    load("images/0001.jpg")\n  File "train.py", line 3, in load\n    height, width = cv2.imread(path).shape[:2]\n                    ^^^^^^^^^^^^^^^^^^^^^^\nAttributeError: \'NoneType\' object has no attribute \'shape\'',
                ),
            ),
            frames="cv2|imread",
        ),
        rule(
            0.55,
            r"!_src\.empty\(\)",
            says(
                r"!ssize\.empty\(\)",
                (
                    "opencv-python-headless 5.0.0.93",
                    "cv2.error: OpenCV(5.0.0) /io/opencv/modules/imgproc/src/resize.cpp:4217: error: (-215:Assertion failed) !ssize.empty() in function 'resize'",
                ),
            ),
        ),
        rule(
            0.8,
            says(
                r"(?:file|path|directory|folder|checkpoint|dataset|annotation|image|label|video)s?\b.{0,160}\b(?:not found|does not exist|doesn't exist|do not exist|is missing|cannot be found|could not be found)",
                (
                    "keras 3.15.1",
                    "ValueError: File not found: filepath=c.keras. Please ensure the file is an accessible `.keras` zip file.",
                ),
            ),
            unless="shared object|librar|module|attribute|dlopen|from (?:the )?checkpoint",
        ),
    ),
    lines=(
        rule(
            0.93,
            says(
                r"can't open file '?[^\n']{1,200}'?: \[Errno 2\]",
                (
                    "CPython 3.11.7",
                    "/usr/bin/python: can't open file '/home/user/project/trian.py': [Errno 2] No such file or directory",
                ),
            ),
        ),
        rule(
            0.82,
            says(
                r"Check failed: .{0,80}\((?:-1 vs\. -1|2 vs\. 0)\) (?:File not found|No such file)",
                (
                    "caffe 1.0",
                    "F0410 22:50:10.167029  2790 io.cpp:36] Check failed: fd != -1 (-1 vs. -1) File not found:  models/bvlc_reference_caffenet/deploy.prototxt",
                ),
            ),
        ),
        rule(
            0.42,
            says(
                "(?<!shared object file: )No such file or directory",
                ("CPython 3.11.7", "FileNotFoundError: [Errno 2] No such file or directory: '/nonexistent'"),
                near(
                    "gdb 7.7, which does not have the source",
                    "Program received signal SIGSEGV, Segmentation fault.\n360     ../Modules/gcmodule.c: No such file or directory.",
                ),
            ),
            unless=r"^\s*\d+\s+\S+\.(?:[chS]|cc|cpp|cxx|cu|hpp): No such file",
        ),
        rule(
            0.6,
            says(
                r"FileNotFoundError\(2, ",
                (
                    "CPython 3.11.7, an exception logged by its repr",
                    "2022-12-09 12:16:38,269 - prepare_dataset - ERROR - Error in function check: FileNotFoundError(2, 'No such file or directory')",
                ),
            ),
        ),
    ),
)
