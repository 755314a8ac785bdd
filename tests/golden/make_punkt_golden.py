#!/usr/bin/env python3
"""Sentences as NLTK's Punkt splits them, for tests/datasets/punkt_test.cpp.

usage: make_punkt_golden.py SHARED_DATA   (a Python with nltk 3.9; writes ruler/punkt.json)

Texts of the shared data are named and hashed, never stored; the short samples are our own.
"""

import hashlib
import json
import pathlib
import sys

import nltk
from nltk.tokenize.punkt import PunktSentenceTokenizer, load_punkt_params

SAMPLES = [
    "",
    "One sentence without an end",
    "First. Second! Third? Fourth.",
    "Dr. Smith met Mr. J. Bach at 5 p.m. on Friday. They talked.",
    "It cost 3.50 dollars. 12. May was cold. No. 7 won.",
    'He said "stop." Then he left. (They stayed.) "Why?" she asked.',
    "Wait... what? Well . . . fine. Two--dashes.--Then more.",
    "The U.S. economy grew. In the U.S. Government offices closed. the end.",
    "e.g. this one, i.e. that one. See fig. 3. etc. And so on.",
    "Line one.\nLine two.\n\nParagraph two! Yes?No.Maybe",
    "A. B. C. are letters. I. Newton was born. J. said so.",
    "Smiles :) end. [1]No space here. [2] Space. {x.} \"'quoted.'\" done.",
    "Umlaute: Über. Élan. ärger. naïve. Ünder!",
    "   leading and trailing   spaces.   ",
    "!!! ??? ... .",
    "Very bad acting!!! I promise. Really?! Yes.",
    "Co. officials and Corp. leaders met at St. Paul. Inc. is short.",
    "Numbers: 1,000.5. 2. three 4.Five -3.2. Next. $5.00 off. 10%. Done.",
    "ends with abbreviation etc.",
    "\u00a0non-breaking\u00a0spaces. Next\u2003em space. End",
]


def digest(sentences):
    return hashlib.sha256("\x1f".join(sentences).encode()).hexdigest()


def main():
    shared = pathlib.Path(sys.argv[1])

    splitter = PunktSentenceTokenizer()
    splitter._params = load_punkt_params(str(shared / "nltk_punkt/english"))

    texts = []
    for path in sorted((shared / "paul_graham_essays").glob("*.txt")):
        texts.append((f"paul_graham_essays/{path.name}", path.read_text()))
    for name in ["gov_report", "qasper", "narrativeqa", "multi_news", "samsum", "lcc", "hotpotqa", "trec"]:
        path = shared / f"longbench/{name}.jsonl"
        with open(path, newline="\n") as lines:
            text = "\n".join(json.loads(line)["context"] for line in lines)
        texts.append((f"longbench/{name}.jsonl", text))

    golden = {
        "made_with": {"nltk": nltk.__version__},
        "samples": [{"text": text, "sentences": splitter.tokenize(text)} for text in SAMPLES],
        "files": [
            {"file": name, "count": len(sentences), "sha256": digest(sentences)}
            for name, text in texts
            for sentences in [splitter.tokenize(text)]
        ],
    }
    path = pathlib.Path(__file__).parent / "ruler/punkt.json"
    path.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
