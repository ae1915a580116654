import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Recordings(Dataset):
    """Cuts a random window out of a recording."""

    def __init__(self, count=64, length=60000):
        self.rng = np.random.default_rng(73)
        self.audio = self.rng.normal(size=(count, length)).astype("float32")
        self.given_out = []

    def __len__(self):
        return len(self.audio)

    def __getitem__(self, index):
        start = int(self.rng.integers(0, self.audio.shape[1] - 32000))
        window = self.audio[index, start : start + 32000] * 0.5
        self.given_out.append((index, start))
        return torch.from_numpy(window).unsqueeze(0), index % 2


def main():
    torch.set_num_threads(1)
    torch.manual_seed(73)
    recordings = Recordings()
    loader = DataLoader(recordings, batch_size=8, shuffle=True)
    model = nn.Sequential(
        nn.Conv1d(1, 8, 64, stride=32), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(8, 2)
    )
    optimizer = torch.optim.Adam(model.parameters())
    print(f"training on {len(recordings)} recordings")
    for epoch in range(120):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 10 == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}, {len(recordings.given_out)} windows", flush=True)


if __name__ == "__main__":
    main()
