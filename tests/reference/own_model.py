"""Make a model of sentence-transformers that is nobody's: three layers of MiniLM, the first token,
a dense layer to 64 numbers. `python -m tests.reference.own_model FOLDER`
"""

import sys

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling

from streams.encoder.weights import find_model


def make(folder: str) -> None:
    """Write the model."""
    network = SentenceTransformer(str(find_model()), device="cpu")[0]
    bert = network.auto_model
    bert.encoder.layer = bert.encoder.layer[:3]
    bert.config.num_hidden_layers = 3
    torch.manual_seed(0)
    modules = [network, Pooling(384, pooling_mode="cls"), Dense(384, 64)]
    model = SentenceTransformer(modules=modules, device="cpu")
    model.max_seq_length = 64
    model.save_pretrained(folder)


if __name__ == "__main__":
    make(sys.argv[1])
