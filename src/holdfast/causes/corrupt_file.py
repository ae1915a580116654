from __future__ import annotations

from holdfast.causes.form import CauseRecord, near, python, rule, says, shell, words

CORRUPT = (
    "invalid header or archive is corrupted",
    says(
        "failed (?:reading zip archive|finding central directory|locating file)",
        ("torch 2.13.0", "failed finding central directory"),
    ),
    says("reading zip archive", ("torch 2.13.0", "reading zip archive")),
    r"unexpected EOF, expected \d+ more bytes",
    "Truncated file",
    says("file signature not found", ("h5py 3.14.0", "file signature not found")),
    "bad (?:object|symbol table|local heap)",
    "image file is truncated",
    "cannot identify image file",
    "broken (?:data stream|PNG file)",
    "DataLoss",
    "DATA_LOSS",
    says("corrupted record", ("tensorflow 2.21.0", "corrupted record at")),
    says("bad magic number", ("CPython 3.11.7", "Bad magic number for central directory")),
    says("Not a (?:JPEG|PNG) file", ("tensorflow 2.21.0", "Not a JPEG file: starts with 0x3 0x3")),
    says(
        "Unknown image file format",
        (
            "tensorflow 2.21.0",
            "InvalidArgumentError: {{function_node __wrapped__DecodeJpeg_device_/job:localhost/replica:0/task:0/device:CPU:0}} Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required. [Op:DecodeJpeg]",
        ),
    ),
    "Invalid (?:PNG|JPEG|GIF|BMP) data",
    says(
        "Input is empty",
        (
            "tensorflow 2.21.0",
            "InvalidArgumentError: {{function_node __wrapped__DecodePng_device_/job:localhost/replica:0/task:0/device:CPU:0}} Input is empty. [Op:DecodePng]",
        ),
    ),
    r"Expected image \(JPEG",
    says(
        r"Trying to decode \w+ format",
        (
            "tensorflow 2.21.0",
            "Trying to decode PNG format using DecodeBmp op. Use `decode_png` or `decode_image` instead.",
        ),
    ),
    says("File is not a zip file", ("CPython 3.11.7", "File is not a zip file")),
    says("BadZipFile", ("CPython 3.11.7", "BadZipFile: File name in directory dense and header dense differ.")),
    says("invalid load key", ("torch 2.13.0", "UnpicklingError: invalid load key, 'v'.")),
    "pickle data was truncated",
    says("Ran out of input", ("CPython 3.11.7", "EOFError: Ran out of input")),
    "unpickling stack underflow",
    "could not find MARK",
    says(
        "ended before the end-of-stream marker",
        ("CPython 3.11.7", "EOFError: Compressed file ended before the end-of-stream marker was reached"),
    ),
    says("Not a gzipped file", ("CPython 3.11.7", "BadGzipFile: Not a gzipped file (b'xx')")),
    says("CRC check failed", ("CPython 3.11.7", "BadGzipFile: CRC check failed dense != dense")),
    r"Error -\d while decompressing",
    says("invalid stored block", ("grpcio 1.85.1", "invalid stored block lengths")),
    says(
        "not a bzip2",
        (
            "CPython 3.11.7",
            "ReadError: file could not be opened successfully:\n- method gz: ReadError('not a gzip file')\n- method bz2: ReadError('not a bzip2 file')\n- method xz: ReadError('not an lzma file')\n- method tar: ReadError('truncated header')",
        ),
    ),
    says("incorrect header check", ("grpcio 1.85.1", "incorrect header check")),
    r"tarfile\.ReadError",
    "Parquet magic bytes",
    says(
        "Error while deserializing header",
        (
            "safetensors 0.8.0",
            "SafetensorError: Error while deserializing header: invalid JSON in header: expected value at line 1 column 1",
        ),
    ),
    "HeaderTooLarge",
    "InvalidHeaderDeserialization",
    "MetadataIncompleteBuffer",
    says("as a pickle", ("numpy 2.4.6", "Failed to interpret file data/train.bin as a pickle")),
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
    "file is corrupt",
    "moov atom not found",
    "Invalid data found when processing input",
    "Format not recognised",
    says(
        "Error tokenizing data(?!.{0,20}out of memory)",
        ("pandas v3.1.0.dev0", "Error tokenizing data"),
        near("pandas 3.0.6", "ParserError: Error tokenizing data. C error: out of memory"),
    ),
    says("No columns to parse from file", ("pandas 3.0.6", "EmptyDataError: No columns to parse from file")),
    "MDB_CORRUPTED",
    says("Error parsing message", ("protobuf 7.36.2", "Error parsing message: too many levels of nesting.")),
    "IDAT: (?:CRC|incorrect)",
    "not a valid (?:TFRecord|HDF5|checkpoint) file",
    "incomplete (?:download|metadata)",
    "cannot mmap an empty file",
    says(
        "storage has wrong (?:byte )?size: expected", ("torch 2.13.0", "storage has wrong byte size: expected 3 got 3")
    ),
    says("valid file signature", ("tensorflow 2.21.0", "Invalid file signature chunk: decoded data size is not zero:")),
    r"unable to (?:synchronously )?open file \((?!unable to (?:open|lock)|no such|name)",
    says(
        "unexpected end of (?:data|file|stream)",
        ("tensorflow 2.21.0", "Unexpected end of stream while parsing aggregate value."),
    ),
    says("EOF (?:reached|where not expected)", ("jaxlib 0.10.2", "EOF reached. Requested to read")),
    says(
        "magic number .{0,30}(?:wrong|invalid|expected)",
        ("vision v0.29.0-rc1", "Magic number incorrect. Invalid .flo file"),
    ),
    "Failed to load .{0,80}truncated",
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
            "^",
            types="CorruptedError UnidentifiedImageError BadZipFile DataLossError UnpicklingError ReadError BadGzipFile LZMAError",
            unless="Weights only|weights_only|WeightsUnpickler",
        ),
        rule(
            0.72,
            "Unable to load weights from pytorch checkpoint file",
            "Not an Arrow file",
            r"!buf\.empty\(\) in function 'imdecode",
        ),
        rule(0.6, "Cannot load file containing pickled data"),
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
            r"corrupted record at \d+",
            "Data loss: ",
            "libpng error: (?:IDAT|Read Error|bad adaptive)",
            "DATA_LOSS",
        ),
        rule(
            0.8,
            says("Not a (?:JPEG|PNG) file: starts with", ("tensorflow 2.21.0", "Not a JPEG file: starts with 0x3 0x3")),
            says("^Input file read error$", ("tensorflow 2.21.0", "Input file read error")),
        ),
        rule(
            0.3,
            says("Premature end of JPEG file", ("tensorflow 2.21.0", "Premature end of JPEG file")),
            says("Corrupt JPEG data", ("tensorflow 2.21.0", "Corrupt JPEG data: 3 extraneous bytes before marker 0x3")),
        ),
    ),
    last_frames=((0.55, r"_check_seekable\(|_open_zipfile_reader\(|PyTorchFileReader\("),),
)
