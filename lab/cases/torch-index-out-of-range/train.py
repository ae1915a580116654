import random

import torch
from torch import nn

NEW_WORD_AT = 900
WORDS = [f"word{number}" for number in range(500)]


def corpus(count=2000):
    chooser = random.Random(2)
    sentences = [chooser.choices(WORDS, k=12) for _ in range(count)]
    sentences[NEW_WORD_AT][3] = "neologism"
    return sentences


class Tokenizer:
    def __init__(self, words):
        self.ids = {word: number for number, word in enumerate(words)}

    def __call__(self, sentence):
        return [self.ids.setdefault(word, len(self.ids)) for word in sentence]


class Tagger(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 24)
        self.rnn = nn.GRU(24, 24, batch_first=True)
        self.out = nn.Linear(24, 2)

    def forward(self, tokens):
        return self.out(self.rnn(self.embedding(tokens))[1][-1])


def main():
    torch.manual_seed(2)
    tokenizer = Tokenizer(WORDS)
    model = Tagger(vocabulary=len(tokenizer.ids))
    sentences = corpus()
    print(f"training on {len(sentences)} sentences")
    optimizer = torch.optim.Adam(model.parameters())
    for start in range(0, len(sentences), 20):
        tokens = torch.tensor([tokenizer(sentence) for sentence in sentences[start : start + 20]])
        loss = nn.functional.cross_entropy(model(tokens), tokens[:, 0] % 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if start % 400 == 0:
            print(f"sentence {start}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
