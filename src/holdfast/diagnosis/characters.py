"""What a console, an editor or a chat program did to the characters of a text, undone."""

from __future__ import annotations

import codecs
import re

UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # PowerShell's `> train.log`
INSTEAD = {
    **dict.fromkeys("\u00a0\u2007\u2009\u202f\u3000", " "),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", ""),
    **dict.fromkeys("‘’‚‛′´＇", "'"),
    **dict.fromkeys("“”„‟″＂", '"'),
    **dict.fromkeys("–−", "-"),
    "—": "--",
    "，": ",",
    "：": ":",
    "（": "(",
    "）": ")",
    # UTF-8 that was read as Windows' own code page
    "â€™": "'",
    "â€˜": "'",
    "â€œ": '"',
    "â€\x9d": '"',
    "â€�": '"',
    "Â ": " ",
}
# A quote of another code page, which UTF-8 cannot read: at one side of a word, or where a word is shortened.
UNREAD_QUOTE = re.compile(r"(?<=\w)\ufffd(?!\w)|(?<!\w)\ufffd(?=\w)|(?<=[a-z])\ufffd(?=(?:t|s|re|ve|ll|d|m)\b)")
COLOURS = re.compile(r"\x1b?\[(?:\d{1,3}(?:;\d{1,3}){0,4})?m")  # often without the escape before them


def decoded(output: bytes) -> str:
    text = output.decode("utf-16" if output.startswith(UTF16) else "utf-8", "replace")
    if "[0m" in text:
        text = COLOURS.sub("", text)
    if text.isascii():
        return text
    # One search for each is quicker than a table for every character: bars are drawn with thousands of others.
    for mark, plain in INSTEAD.items():
        if mark in text:
            text = text.replace(mark, plain)
    return UNREAD_QUOTE.sub("'", text) if "\ufffd" in text else text
