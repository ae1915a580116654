import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

VOCABULARY = 500
EMPTY = 1234


class Reviews(Dataset):
    """Token ids of a review and its rating. Now and then somebody submitted an empty one."""

    def __init__(self, count=2000):
        generator = torch.Generator().manual_seed(3)
        lengths = torch.randint(5, 60, (count,), generator=generator)
        lengths[EMPTY] = 0
        self.texts = [torch.randint(0, VOCABULARY, (int(n),), generator=generator) for n in lengths]
        self.ratings = torch.randint(0, 5, (count,), generator=generator)

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.texts[index], self.ratings[index]


def bag_of_words(batch):
    rows = torch.zeros(len(batch), VOCABULARY)
    for row, (tokens, _) in zip(rows, batch):
        weight = 1 / len(tokens)
        for token in tokens.tolist():
            row[token] += weight
    return rows, torch.stack([rating for _, rating in batch])


def main():
    torch.manual_seed(3)
    data = Reviews()
    loader = DataLoader(data, batch_size=50, shuffle=True, num_workers=2, collate_fn=bag_of_words)
    model = nn.Sequential(nn.Linear(VOCABULARY, 64), nn.ReLU(), nn.Linear(64, 5))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    print(f"training on {len(data)} reviews")
    for epoch in range(1, 4):
        total = 0.0
        for features, ratings in loader:
            loss = nn.functional.cross_entropy(model(features), ratings)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
