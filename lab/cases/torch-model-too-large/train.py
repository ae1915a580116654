import torch
from torch import nn

VOCABULARY, WIDTH = 4000000, 256


class Classifier(nn.Module):
    """A bag of words, averaged."""

    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(VOCABULARY, WIDTH)
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, tokens):
        return self.head(self.words(tokens))


def main():
    torch.manual_seed(41)
    print(f"building a model for {VOCABULARY} words")
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(60):
        tokens = torch.randint(0, VOCABULARY, (64, 40))
        loss = nn.functional.cross_entropy(model(tokens), tokens[:, 0] % 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
