from __future__ import annotations

from holdfast.causes.form import CauseRecord, near, python, rule, says, shell, words
from holdfast.causes.shared.words import NO_PICKLE

CORRUPT = (
    says(
        "failed (?:reading zip archive|finding central directory|locating file)",
        ("torch 2.2", "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"),
    ),
    says(
        NO_PICKLE,
        (
            "torch 2.6, of a page in place of a checkpoint",
            "_pickle.UnpicklingError: Weights only load failed. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in arbitrary code execution. Do it only if you got the file from a trusted source.\nPlease file an issue with the following so that we can make `weights_only=True` compatible with your use case: WeightsUnpickler error: Unsupported operand 60",
        ),
        (
            "torch 2.13.0, of Git LFS's pointer",
            "_pickle.UnpicklingError: Weights only load failed. Please file an issue with the following so that we can make `weights_only=True` compatible with your use case: WeightsUnpickler error: \n\nUnsupported operand 118",
        ),
        near(
            "torch 2.6, of pickle's protocol 4",
            "_pickle.UnpicklingError: Weights only load failed. WeightsUnpickler error: Unsupported operand 149",
        ),
    ),
    says(
        "MDB_INVALID",
        ("lmdb 1.4", "lmdb.InvalidError: data/train/000: MDB_INVALID: File is not an LMDB file"),
    ),
    says("Truncated file", ("Pillow 13.0.0", "OSError: Truncated File Read")),
    says(
        "bad (?:object|symbol table|local heap)",
        (
            "h5py 3.14.0 of a file with damaged bytes",
            "KeyError: 'Unable to synchronously open object (bad symbol table node signature)'",
        ),
    ),
    says("image file is truncated", ("Pillow 13.0.0", "OSError: image file is truncated (1 bytes not processed)")),
    says(
        "cannot identify image file",
        ("Pillow 13.0.0", "PIL.UnidentifiedImageError: cannot identify image file 'img_0414.jpg'"),
    ),
    says(
        "broken (?:data stream|PNG file)",
        ("Pillow 13.0.0", "OSError: broken data stream when reading image file"),
        ("Pillow 13.0.0", "SyntaxError: broken PNG file (bad header checksum in b'IDAT')"),
    ),
    says(
        "DataLoss",
        (
            "tensorflow 2.21.0",
            "tensorflow.python.framework.errors_impl.DataLossError: {{function_node __wrapped__IteratorGetNext_output_types_1_device_/job:localhost/replica:0/task:0/device:CPU:0}} truncated record at 832' failed with Read less bytes than requested [Op:IteratorGetNext] name: ",
        ),
    ),
    says(
        "DATA_LOSS",
        (
            "tensorflow 2.21.0",
            "W0000 00:00:1794823229.649939   18152 local_rendezvous.cc:412] Local rendezvous is aborting with status: DATA_LOSS: truncated record at 832' failed with Read less bytes than requested",
        ),
    ),
    says(
        "bad magic number",
        ("tensorflow 2.21.0", "tensorflow.python.framework.errors_impl.OpError: not an sstable (bad magic number)"),
    ),
    says("Not a (?:JPEG|PNG) file", ("tensorflow 2.21.0", "Not a JPEG file: starts with 0x3c 0x68")),
    says(
        "Unknown image file format",
        (
            "tensorflow 2.21.0",
            "InvalidArgumentError: {{function_node __wrapped__DecodeJpeg_device_/job:localhost/replica:0/task:0/device:CPU:0}} Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required. [Op:DecodeJpeg]",
        ),
    ),
    says(
        "Invalid (?:PNG|JPEG|GIF|BMP) data",
        (
            "tensorflow 2.21.0",
            "InvalidArgumentError: {{function_node __wrapped__DecodePng_device_/job:localhost/replica:0/task:0/device:CPU:0}} Invalid PNG data, size 2000 [Op:DecodePng]",
        ),
        (
            "tensorflow 2.21.0",
            "InvalidArgumentError: {{function_node __wrapped__DecodeJpeg_device_/job:localhost/replica:0/task:0/device:CPU:0}} jpeg::Uncompress failed. Invalid JPEG data or crop window. [Op:DecodeJpeg]",
        ),
    ),
    says(
        "Input is empty",
        (
            "tensorflow 2.21.0",
            "InvalidArgumentError: {{function_node __wrapped__DecodePng_device_/job:localhost/replica:0/task:0/device:CPU:0}} Input is empty. [Op:DecodePng]",
        ),
    ),
    says(
        r"Expected image \(JPEG",
        (
            "tensorflow 1, of a .DS_Store among the images",
            "InvalidArgumentError: Expected image (JPEG, PNG, or GIF), got unknown format starting with '\\000\\000\\000\\001Bud1\\000\\000\\020\\000\\000\\000\\010\\000'",
        ),
    ),
    says(
        r"Trying to decode \w+ format",
        (
            "tensorflow 2.21.0",
            "Trying to decode PNG format using DecodeBmp op. Use `decode_png` or `decode_image` instead.",
        ),
    ),
    says(
        "BadZipFile",
        ("CPython 3.11.7", "zipfile.BadZipFile: File name in directory 'model.json' and header b'Aodel.json' differ."),
    ),
    says("invalid load key", ("torch 2.13.0", "UnpicklingError: invalid load key, 'v'.")),
    says("pickle data was truncated", ("CPython 3.11.7", "_pickle.UnpicklingError: pickle data was truncated")),
    says("Ran out of input", ("CPython 3.11.7", "EOFError: Ran out of input")),
    says(
        "unpickling stack underflow",
        ("CPython 3.11.7, of a text file", "_pickle.UnpicklingError: unpickling stack underflow"),
    ),
    says("could not find MARK", ("CPython 3.11.7, of a text file", "_pickle.UnpicklingError: could not find MARK")),
    says(
        "ended before the end-of-stream marker",
        ("CPython 3.11.7", "EOFError: Compressed file ended before the end-of-stream marker was reached"),
    ),
    says("Not a gzipped file", ("CPython 3.11.7", "BadGzipFile: Not a gzipped file (b'xx')")),
    says("CRC check failed", ("CPython 3.11.7", "gzip.BadGzipFile: CRC check failed 0x36e309ec != 0xb0977b1e")),
    says(
        r"Error -\d while decompressing",
        ("CPython 3.11.7", "zlib.error: Error -5 while decompressing data: incomplete or truncated stream"),
    ),
    says(
        "not a bzip2",
        (
            "CPython 3.11.7",
            "ReadError: file could not be opened successfully:\n- method gz: ReadError('not a gzip file')\n- method bz2: ReadError('not a bzip2 file')\n- method xz: ReadError('not an lzma file')\n- method tar: ReadError('truncated header')",
        ),
    ),
    says(r"tarfile\.ReadError", ("CPython 3.11.7", "tarfile.ReadError: empty file")),
    says(
        "Error while deserializing(?: header)?: ",
        (
            "safetensors 0.8.0",
            "SafetensorError: Error while deserializing header: invalid JSON in header: expected value at line 1 column 1",
        ),
        ("safetensors 0.8.0, from bytes", "SafetensorError: Error while deserializing: header too large"),
        (
            "safetensors 0.8.0",
            "SafetensorError: Error while deserializing header: incomplete metadata, file not fully covered",
        ),
    ),
    says("as a pickle", ("numpy 2.4.6", "_pickle.UnpicklingError: Failed to interpret file 'feat.npy' as a pickle")),
    says("No data left in file", ("numpy 2.4.6", "EOFError: No data left in file")),
    says("checksum (?:does not|mismatch)", ("tensorflow 2.21.0", "The length checksum does not match: expected")),
    says(
        "hash mismatch",
        ("tensorflow 2.21.0", "Corrupted Riegeli/records file: chunk header hash mismatch (computed 0x"),
    ),
    says(
        r"(?:may|might|is|are|be) (?:\w+ )?corrupt(?:ed)?\b",
        (
            "transformers 5.22.2",
            ": BPE merge indices are not consecutive. Please check that the tokenizer is not corrupted!",
        ),
    ),
    says(
        "moov atom not found",
        ("FFmpeg in opencv-python-headless 5.0.0.93", "[mov,mp4,m4a,3gp,3g2,mj2 @ 0x7f3ff4e40180] moov atom not found"),
    ),
    says(
        "Invalid data found when processing input",
        (
            "av 18.1.0",
            "av.error.InvalidDataError: [Errno 1094995529] Invalid data found when processing input: 'clip.mp4'",
        ),
    ),
    says(
        "Format not recognised",
        ("soundfile 0.14.0", "soundfile.LibsndfileError: Error opening 'clip_17.wav': Format not recognised."),
    ),
    says(
        "Error tokenizing data(?!.{0,20}out of memory)",
        (
            "pandas 3.1.1",
            "pandas.errors.ParserError: Error tokenizing data. C error: Expected 2 fields in line 3, saw 3\n",
        ),
        near("pandas 3.0.6", "ParserError: Error tokenizing data. C error: out of memory"),
    ),
    says("No columns to parse from file", ("pandas 3.0.6", "EmptyDataError: No columns to parse from file")),
    says("MDB_CORRUPTED", ("lmdb 3.0.0", "lmdb.CorruptedError: mdb_get: MDB_CORRUPTED: Located page was wrong type")),
    says("Error parsing message", ("protobuf 7.36.2", "Error parsing message: too many levels of nesting.")),
    says("cannot mmap an empty file", ("CPython 3.11.7", "ValueError: cannot mmap an empty file")),
    says(
        "storage has wrong (?:byte )?size: expected",
        ("torch 2.13.0", "RuntimeError: storage has wrong byte size: expected 2359296 got 0"),
    ),
    says(
        r"unable to (?:synchronously )?open file \((?!unable to (?:open|lock)|no such|name|file is already)",
        ("h5py 3.14.0", "OSError: Unable to synchronously open file (bad superblock version number)"),
        near("h5py 3.14.0", "OSError: Unable to synchronously open file (file is already open for read-only)"),
    ),
    says(
        "unexpected end of (?:data|file|stream)",
        ("tensorflow 2.21.0", "Unexpected end of stream while parsing aggregate value."),
    ),
    says("EOF (?:reached|where not expected)", ("jaxlib 0.10.2", "EOF reached. Requested to read")),
    says(
        "magic number .{0,30}(?:wrong|invalid|expected)",
        ("vision v0.29.0-rc1", "Magic number incorrect. Invalid .flo file"),
    ),
)
SPAWNING = r"multiprocessing[/\\]+spawn|reduction\.pickle\.load"
STORED = "(?:file|archive|checkpoint|image|record|header|shard|parquet|zip|hdf5|pickle|tfrecord)"
CAUSE = CauseRecord(
    id="corrupt-file",
    family="data",
    title="A file is damaged",
    meaning="It is cut off, empty, or no file of its kind: an interrupted download or save is the usual reason. It has to be fetched or written again.",
    sure="The reader's own complaint about the file's form.",
    message_in_title=True,
    recipes=(
        words("Look at it, then fetch it again", 'ls -l "$path"; file "$path"'),
        words("Fetch or write again the file that is read here", "$frame"),
        python(
            "Find damaged images",
            'from PIL import Image\nfor path in sorted(pathlib.Path("images").rglob("*.jpg")):\n    try:\n        Image.open(path).verify()\n    except Exception as error:\n        print(path, error)',
            said=r"(?i)image|jpe?g|\bpng\b|\bgif\b|\bbmp\b",
        ),
        python(
            "Write it so that what is interrupted leaves the old one",
            'with open("data.tmp", "wb") as file:\n    file.write(content)\nos.replace("data.tmp", "data.bin")',
            said=r"(?i)truncat|ran out of input|unexpected end|not a zip file|central directory|EOFError",
        ),
        shell(
            "Large files may be pointers only",
            "git lfs pull",
            said=r"(?i)invalid load key, 'v'|signature not found|not a zip file|header|magic|protobuf",
        ),
        shell("Fetch Keras weights again", "rm -r ~/.keras/models", said=r"\.keras[/\\]models"),
    ),
    exceptions=(
        rule(0.92, *CORRUPT, unless="No such file or directory|CUDA", outside=SPAWNING),
        rule(
            0.9,
            says(
                "^",
                ("lmdb 3.0.0", "lmdb.CorruptedError: mdb_get: MDB_CORRUPTED: Located page was wrong type"),
                (
                    "CPython 3.11.7, of an empty file",
                    "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
                ),
                near("httpx 0.28", "httpx.ReadError: [Errno 104] Connection reset by peer"),
            ),
            types="CorruptedError UnidentifiedImageError BadZipFile DataLossError UnpicklingError ReadError BadGzipFile LZMAError",
            unless=r"Weights only|weights_only|WeightsUnpickler|http(?:x|core)2?\.ReadError",
        ),
        rule(
            0.72,
            says(
                "Unable to load weights from pytorch checkpoint file",
                (
                    "transformers 4.9",
                    "OSError: Unable to load weights from pytorch checkpoint file for './output/checkpoint-500' at './output/checkpoint-500/pytorch_model.bin'If you tried to load a PyTorch model from a TF 2.0 checkpoint, please set from_tf=True. ",
                ),
            ),
            says("Not an Arrow file", ("pyarrow 26.0.1", "pyarrow.lib.ArrowInvalid: Not an Arrow file")),
            says(
                r"!buf\.empty\(\) in function 'imdecode",
                (
                    "opencv-python-headless 5.0.0.93",
                    "cv2.error: OpenCV(5.0.0) /io/opencv/modules/imgcodecs/src/loadsave.cpp:1291: error: (-215:Assertion failed) !buf.empty() in function 'imdecode_'",
                ),
            ),
        ),
        rule(
            0.6,
            says(
                r"Cannot load file containing pickled data|This file contains pickled \(object\) data",
                (
                    "numpy 2.4.6, of a text file",
                    "ValueError: This file contains pickled (object) data. If you trust the file you can load it unsafely using the `allow_pickle=` keyword argument or `pickle.load()`.",
                ),
                ("numpy 1.26.4", "ValueError: Cannot load file containing pickled data when allow_pickle=False"),
            ),
        ),
        rule(
            0.8,
            says(
                "unpack requires a (?:buffer|string argument|bytes object)",
                (
                    "Pillow 5.1",
                    'Traceback (most recent call last):\n  File "train.py", line 9, in load\n    image = Image.open(path).convert("RGB")\n  File "/usr/lib/python3/dist-packages/PIL/PngImagePlugin.py", line 113, in read\n    length = i32(s)\n  File "/usr/lib/python3/dist-packages/PIL/_binary.py", line 76, in i32be\n    return unpack(">I", c[o:o+4])[0]\nstruct.error: unpack requires a buffer of 4 bytes',
                ),
            ),
            frames=r"\bPIL\b",
        ),
        rule(0.5, "^", types="JSONDecodeError DecodeError"),
        rule(
            0.84,
            says(
                STORED + r"\b.{0,80}\b(?:corrupt(?:ed)?|truncated|damaged|malformed|unreadable|incomplete)\b",
                (
                    "torch 2.13.0",
                    "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory. This is an internal miniz error. If you are seeing this error, there is a high likelihood that your checkpoint file is corrupted. This can happen if the checkpoint was not saved properly, was transferred incorrectly, or the file was modified after saving.",
                ),
            ),
            says(
                "(?:corrupt(?:ed)?|truncated|damaged) " + STORED,
                (
                    "CPython 3.11.7",
                    "ReadError: file could not be opened successfully:\n- method gz: ReadError('not a gzip file')\n- method bz2: ReadError('not a bzip2 file')\n- method xz: ReadError('not an lzma file')\n- method tar: ReadError('truncated header')",
                ),
            ),
        ),
    ),
    lines=(
        rule(0.72, "moov atom not found", "Invalid data found when processing input"),
        rule(
            0.8,
            says(
                r"corrupted record at \d+",
                (
                    "tensorflow 2.21.0",
                    "DataLossError: {{function_node __wrapped__IteratorGetNext_output_types_1_device_/job:localhost/replica:0/task:0/device:CPU:0}} corrupted record at 428 [Op:IteratorGetNext] name: ",
                ),
            ),
            says(
                "Data loss: ",
                (
                    "tensorflow 1.4 log",
                    "2018-04-09 17:11:20.266064: W tensorflow/core/framework/op_kernel.cc:1192] Data loss: not an sstable (bad magic number)",
                ),
            ),
            says(
                "libpng error: (?:IDAT|Read Error|bad adaptive)",
                ("libpng in opencv-python-headless 5.0.0.93", "libpng error: IDAT: incorrect data check"),
            ),
            "DATA_LOSS",
        ),
        rule(
            0.8,
            says(
                "Not a (?:JPEG|PNG) file: starts with", ("tensorflow 2.21.0", "Not a JPEG file: starts with 0x3c 0x68")
            ),
            says("^Input file read error$", ("tensorflow 2.21.0", "Input file read error")),
        ),
        rule(
            0.3,
            says("Premature end of JPEG file", ("tensorflow 2.21.0", "Premature end of JPEG file")),
            says(
                "Corrupt JPEG data", ("tensorflow 2.21.0", "Corrupt JPEG data: 240 extraneous bytes before marker 0xd9")
            ),
        ),
    ),
    last_frames=((0.55, r"_check_seekable\(|_open_zipfile_reader\(|PyTorchFileReader\("),),
)
