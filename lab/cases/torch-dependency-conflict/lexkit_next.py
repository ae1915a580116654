"""A tokenizer's package, release 0.5."""


class Vocabulary:
    def __init__(self, sentences):
        words = sorted({word for sentence in sentences for word in sentence.split()})
        self.ids = {word: number for number, word in enumerate(words)}

    def __len__(self):
        return len(self.ids)

    def __call__(self, sentence):
        return [self.ids[word] for word in sentence.split()]
