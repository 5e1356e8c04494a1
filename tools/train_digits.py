#!/usr/bin/env python3
"""Train the model that `volvelle demo` classifies with, and write it and the held-out images.

Writes into --out (default: data/ beside tools/):
  digits-mlp.safetensors  W1 [64,64], b1 [64], W2 [10,64], b2 [10], all F32; metadata in the header
  digits-test.csv         the 360 held-out images, one a line: 64 pixels 0..16 row by row, then the class

Model: logits = W2 . gelu(W1 . (pixels / 16) + b1) + b2 with the exact GELU, x * Phi(x).

Everything is drawn from one seed and computed on one thread, so two runs on one machine give the
same bytes. Another BLAS may round differently in the last bit, and a trained model amplifies that.

    python3 -m venv .venv && .venv/bin/pip install -r tools/requirements.txt
    .venv/bin/python tools/train_digits.py
"""

import os

# Before NumPy is loaded: with several threads a BLAS may add in another order.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import json
import struct
from pathlib import Path

import numpy as np
from scipy.special import erf
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, train_test_split

SOURCE = (
    "E. Alpaydin and C. Kaynak (1998), Optical Recognition of Handwritten Digits, "
    "UCI Machine Learning Repository, doi:10.24432/C50P49, CC BY 4.0; "
    "the 1797 test images as shipped with scikit-learn"
)
SEED = 2026
HELD_OUT = 360
HIDDEN = 64
EPOCHS = 300
BATCH = 64
RATE = 3e-3
DECAY = 1e-2  # decoupled weight decay, as in AdamW
SMOOTHING = 0.05  # of the labels
NOISE = 0.05  # standard deviation added to pixels in 0..1
SHIFT = 0.5  # share of the training images moved by one pixel, anew each epoch


def gelu(x):
    return 0.5 * x * (1.0 + erf(x / np.sqrt(2.0)))


def gelu_slope(x):
    return 0.5 * (1.0 + erf(x / np.sqrt(2.0))) + x * np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)


def logits(model, x):
    return gelu(x @ model["W1"].T + model["b1"]) @ model["W2"].T + model["b2"]


def accuracy(model, x, y):
    return float(np.mean(np.argmax(logits(model, x), axis=1) == y))


def augment(rng, x):
    """Moves some images by one pixel up, down, left or right, and adds noise to all."""
    images = x.reshape(-1, 8, 8)
    moved = np.zeros_like(images)
    way = rng.integers(0, 4, len(images))
    for w, (to, fro) in enumerate(
        [
            (np.s_[:, :-1, :], np.s_[:, 1:, :]),
            (np.s_[:, 1:, :], np.s_[:, :-1, :]),
            (np.s_[:, :, :-1], np.s_[:, :, 1:]),
            (np.s_[:, :, 1:], np.s_[:, :, :-1]),
        ]
    ):
        part = np.zeros_like(images[way == w])
        part[to] = images[way == w][fro]
        moved[way == w] = part
    keep = rng.random(len(images)) >= SHIFT
    out = np.where(keep[:, None, None], images, moved).reshape(x.shape)
    return out + rng.normal(0.0, NOISE, x.shape)


def train(x, y, seed):
    """Adam with weight decay and a cosine schedule; returns float32 parameters."""
    rng = np.random.default_rng(seed)
    model = {
        "W1": rng.normal(0.0, np.sqrt(2.0 / 64), (HIDDEN, 64)),
        "b1": np.zeros(HIDDEN),
        "W2": rng.normal(0.0, np.sqrt(2.0 / HIDDEN), (10, HIDDEN)),
        "b2": np.zeros(10),
    }
    first = {k: np.zeros_like(v) for k, v in model.items()}
    second = {k: np.zeros_like(v) for k, v in model.items()}
    wanted = np.full((len(y), 10), SMOOTHING / 10)
    wanted[np.arange(len(y)), y] += 1.0 - SMOOTHING
    steps = EPOCHS * (len(x) // BATCH)
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(x))
        seen = augment(rng, x)
        for start in range(0, len(x) - BATCH + 1, BATCH):
            pick = order[start : start + BATCH]
            xb = seen[pick]
            h = xb @ model["W1"].T + model["b1"]
            a = gelu(h)
            z = a @ model["W2"].T + model["b2"]
            p = np.exp(z - z.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            dz = (p - wanted[pick]) / BATCH
            dh = (dz @ model["W2"]) * gelu_slope(h)
            grads = {"W1": dh.T @ xb, "b1": dh.sum(axis=0), "W2": dz.T @ a, "b2": dz.sum(axis=0)}
            step += 1
            rate = RATE * 0.5 * (1.0 + np.cos(np.pi * step / steps))
            for k, g in grads.items():
                first[k] = 0.9 * first[k] + 0.1 * g
                second[k] = 0.999 * second[k] + 0.001 * g * g
                m = first[k] / (1.0 - 0.9**step)
                v = second[k] / (1.0 - 0.999**step)
                model[k] -= rate * (m / (np.sqrt(v) + 1e-8) + DECAY * model[k])
    return {k: v.astype(np.float32) for k, v in model.items()}


def write_safetensors(path, tensors, metadata):
    """The format is an 8-byte header length, a JSON header, the bytes; keys sorted to be reproducible."""
    header = {"__metadata__": metadata}
    body = b""
    for name in sorted(tensors):
        raw = tensors[name].astype("<f4").tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(tensors[name].shape),
            "data_offsets": [len(body), len(body) + len(raw)],
        }
        body += raw
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def write_images(path, pixels, classes):
    lines = [f"# {SOURCE}", "# 64 pixels 0..16, row by row, then the class 0..9"]
    for image, label in zip(pixels, classes):
        lines.append(",".join(str(int(v)) for v in [*image, label]))
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent.parent / "data")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument(
        "--folds", action="store_true", help="only cross-validate on the training images (to choose constants)"
    )
    args = parser.parse_args()

    digits = load_digits()
    pixels, classes = digits.data.astype(np.int64), digits.target.astype(np.int64)
    train_x, test_x, train_y, test_y = train_test_split(
        pixels, classes, test_size=HELD_OUT, stratify=classes, random_state=args.seed
    )
    if args.folds:
        scores = []
        for fit, held in StratifiedKFold(5, shuffle=True, random_state=args.seed).split(train_x, train_y):
            model = train(train_x[fit] / 16.0, train_y[fit], args.seed)
            scores.append(accuracy(model, train_x[held] / 16.0, train_y[held]))
        print("cross-validated accuracy:", " ".join(f"{s:.4f}" for s in scores), f"mean {np.mean(scores):.4f}")
        return

    model = train(train_x / 16.0, train_y, args.seed)
    score = accuracy({k: v.astype(np.float64) for k, v in model.items()}, test_x / 16.0, test_y)
    args.out.mkdir(parents=True, exist_ok=True)
    write_safetensors(
        args.out / "digits-mlp.safetensors",
        model,
        {
            "architecture": "logits = W2 . gelu(W1 . (pixels / 16) + b1) + b2, exact gelu",
            "source": SOURCE,
            "seed": str(args.seed),
            "held_out_images": str(HELD_OUT),
            "held_out_accuracy": f"{score:.4f}",
        },
    )
    write_images(args.out / "digits-test.csv", test_x, test_y)
    print(f"accuracy on the {HELD_OUT} held-out images: {score:.4f}")
    print("largest |parameter|:", {k: float(np.abs(v).max()) for k, v in model.items()})


if __name__ == "__main__":
    main()
