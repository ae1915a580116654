from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

NOT_COPIED = 250
CLIPS = Path("clips")


def prepare(count=400):
    """Spectrograms as the export leaves them, and the list that goes with them."""
    CLIPS.mkdir(exist_ok=True)
    rng = np.random.default_rng(13)
    names = [f"clip-{number:04d}.npy" for number in range(count)]
    for name in names:
        np.save(CLIPS / name, rng.normal(size=(1, 20, 20)).astype("float32"))
    (CLIPS / names[NOT_COPIED]).touch()
    Path("clips.txt").write_text("\n".join(names))


class Clips(Dataset):
    def __init__(self, listing):
        self.names = Path(listing).read_text().splitlines()

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        return torch.from_numpy(np.load(CLIPS / self.names[index])), index % 5


def main():
    torch.manual_seed(13)
    prepare()
    clips = Clips("clips.txt")
    print(f"training on {len(clips)} clips")
    loader = DataLoader(clips, batch_size=10, num_workers=2)
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 18 * 18, 5))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(1, 3):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
