import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TOPICS = 20
RELABELLED = 1700


class Documents(Dataset):
    """Bags of words with a topic each; the second annotator's file begins at RELABELLED."""

    def __init__(self, count=3000, vocabulary=400):
        generator = torch.Generator().manual_seed(5)
        self.words = torch.rand(count, vocabulary, generator=generator)
        self.topic = torch.arange(count) % TOPICS
        self.topic[RELABELLED:] += 1

    def __len__(self):
        return len(self.words)

    def __getitem__(self, index):
        return self.words[index], self.topic[index]


def main():
    torch.manual_seed(5)
    documents = Documents()
    loader = DataLoader(documents, batch_size=50)
    print(f"training on {len(documents)} documents")
    model = nn.Sequential(nn.Linear(400, 64), nn.ReLU(), nn.Linear(64, TOPICS))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.0)
    for epoch in range(1, 4):
        for step, (words, topic) in enumerate(loader):
            loss = criterion(model(words), topic)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 20 == 0:
                print(f"epoch {epoch} step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
