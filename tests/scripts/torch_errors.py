"""Errors that pass through a loader, a backward and a save: their tracebacks, as the script sees them."""

import traceback

import torch
from torch.utils.data import DataLoader, Dataset


class Broken(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        raise KeyError(index)


def load():
    next(iter(DataLoader(Broken(), batch_size=2)))


def backward():
    torch.ones(3).backward()


def save():
    torch.save({}, "/no/such/folder/x.pt")


for attempt in (load, backward, save):
    try:
        attempt()
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        print(attempt.__name__, type(error).__name__, [(frame.filename, frame.name) for frame in frames])
