"""Prompts of exact lengths for SmolLM2, as token ids, shared by the other golden-file scripts.

    python make_smollm2_prompts.py --tokenizer DIR/tokenizer.json [--text /usr/share/common-licenses/GPL-3]

The text is the GNU GPL 3 as Debian's base-files package installs it, with five sentences of our own
planted in it, and a question about them, in the model's chat layout. Only ids are stored, under the
name of the length; the text's SHA-256 is in the metadata. Ids: int32.
"""

import argparse
import pathlib

import torch
from tokenizers import Tokenizer

import common

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
FACTS = (
    "The lighthouse keeper of Skarholm writes her log in green ink.",
    "The spare key of the boathouse hangs behind the blue clock.",
    "The ferry to Skarholm leaves at 7:45 from pier nine.",
    "The harbour office keeps 318 old sea charts in its cellar.",
    "The baker of the island closes her shop on every second Tuesday.",
)
QUESTION = ("Where does the spare key of the boathouse hang, and when does the ferry to Skarholm "
            "leave? Explain in a few sentences what else the text tells about the island.")
SHORT = "Which river flows through the city of Paris, France?"  # 20 ids with the chat layout


def build(tokenizer, text, length):
    """Head, body and tail whose ids count exactly `length`; the body is cut to fit."""
    def encode(part):
        return tokenizer.encode(part, add_special_tokens=False).ids

    head = encode(f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n")
    tail = encode(f"\n\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n")
    room = length - len(head) - len(tail)
    facts = [encode(f" {fact}\n") for fact in FACTS]
    filler = encode(text)[: room - sum(len(f) for f in facts)]
    body = []
    for index, fact in enumerate(facts):
        start = index * len(filler) // len(facts)
        body += filler[start: (index + 1) * len(filler) // len(facts)] + fact
    ids = head + body + tail
    assert len(ids) == length, (len(ids), length)
    return ids


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", type=pathlib.Path,
                        default=common.default_smollm2_dir() / "tokenizer.json")
    parser.add_argument("--text", type=pathlib.Path,
                        default=pathlib.Path("/usr/share/common-licenses/GPL-3"))
    parser.add_argument("--out", type=pathlib.Path, default=common.PROMPTS)
    args = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(args.tokenizer))
    text = " ".join(args.text.read_text().split())
    prompts = {str(n): build(tokenizer, text, n) for n in (300, 500, 1000, 4000)}
    short = f"<|im_start|>user\n{SHORT}<|im_end|>\n<|im_start|>assistant\n"
    prompts["20"] = tokenizer.encode(short, add_special_tokens=False).ids
    assert len(prompts["20"]) == 20
    tensors = {name: torch.tensor(ids, dtype=torch.int32) for name, ids in prompts.items()}
    common.save_golden(args.out, tensors, __file__, ("tokenizers",),
                       text_sha256=common.sha256_of(args.text))
    print(tokenizer.decode(prompts["20"], skip_special_tokens=False))


if __name__ == "__main__":
    main()
