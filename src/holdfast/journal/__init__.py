"""The append-only, checksummed record of one run: written by one process a stream, read by any."""

from holdfast.journal.format import NewerJournal
from holdfast.journal.reader import Follower, Journal
from holdfast.journal.writer import JournalWriter

__all__ = ["Follower", "Journal", "JournalWriter", "NewerJournal"]
