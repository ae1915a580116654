import torch
from torch import nn

SENTENCES = ["the cat sat on the mat", "a dog ran after the cat", "the mat was red"] * 200


def prepare(sentences):
    print("preparing the vocabulary")
    import lexkit

    return lexkit.Vocabulary(sentences)


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embedding = nn.EmbeddingBag(size, 16)
        self.out = nn.Linear(16, 2)

    def forward(self, tokens):
        return self.out(self.embedding(tokens))


def main():
    torch.manual_seed(49)
    vocabulary = prepare(SENTENCES)
    model = Model(len(vocabulary))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step, sentence in enumerate(SENTENCES):
        tokens = torch.tensor([vocabulary(sentence)])
        loss = nn.functional.cross_entropy(model(tokens), torch.tensor([int("cat" in sentence)]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 150 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
