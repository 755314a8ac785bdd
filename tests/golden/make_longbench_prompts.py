#!/usr/bin/env python3
"""Golden LongBench prompts, tokenised by transformers.

One record per task (and per LongBench-E task) and model family: the number of tokens, the SHA-256
of the ids as little-endian int32, and the first and last eight ids. No text of the data sets is
stored. Follows the official steps: fill the pattern, tokenise with special tokens, cut the middle
by decoding both halves, wrap in the chat template unless the task is few-shot or code, tokenise.

    python3 tests/golden/make_longbench_prompts.py SHARED_DATA PATTERNS.json OUT.json

PATTERNS.json is config/dataset2prompt.json of THUDM/LongBench (commit 2e00731), which is not kept
here; its SHA-256 of every pattern is stored with the result.
"""

import hashlib
import json
import os
import pathlib
import struct
import sys

import tokenizers
import transformers

NO_TEMPLATE = {"trec", "triviaqa", "samsum", "lsht", "lcc", "repobench-p"}
LIMITS = [0, 1500]
# Model folder, BOS token, and the file its chat template is in.
FAMILIES = {
    "smollm2": ("SmolLM2-135M-Instruct", None, None),
    "llama-3.1": ("Llama-3.1-8B-Instruct", "<|begin_of_text|>",
                  "chat_template.meta-llama-Llama-3.1-8B-Instruct.jinja"),
    "qwen3": ("Qwen3-8B", None, "chat_template.jinja"),
    "mistral-v0.2": ("Mistral-7B-Instruct-v0.2", "<s>", "tokenizer_config.json"),
}
DEFAULT_MODEL = pathlib.Path(os.environ.get("KVLAB_CACHE") or pathlib.Path.home() / ".cache/kvlab",
                             "models/SmolLM2-135M-Instruct/tokenizer_config.json")


def read_template(folder, name):
    path = folder / name if name else DEFAULT_MODEL
    return json.loads(path.read_text())["chat_template"] if path.suffix == ".json" else path.read_text()


def facts(ids):
    return {"count": len(ids), "first": ids[:8], "last": ids[-8:],
            "sha256": hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest()}


class Family:
    def __init__(self, shared, name):
        folder_name, self.bos, template_file = FAMILIES[name]
        folder = shared / "model_configs" / folder_name
        self.folder_name = folder_name
        self.template = read_template(folder, template_file)
        self.tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(folder / "tokenizer.json"), bos_token=self.bos)
        plain = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        assert self.ids("A b.\n\u4e2d") == plain.encode("A b.\n\u4e2d").ids

    def ids(self, text):
        return self.tokenizer(text).input_ids

    def chat(self, text):
        return self.tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], chat_template=self.template, tokenize=False,
            add_generation_prompt=True, enable_thinking=False)

    def format(self):
        before, after = self.chat("SENTINEL").split("SENTINEL")
        return {"folder": self.folder_name, "before_user": before, "after_user": after,
                "trims_user_text": self.chat(" SENTINEL ") == self.chat("SENTINEL")}

    def cut_middle(self, prompt, limit, clean_up):
        ids = self.ids(prompt)
        if not limit or len(ids) <= limit:
            return prompt
        half = limit // 2
        return "".join(self.tokenizer.decode(part, skip_special_tokens=True, clean_up_tokenization_spaces=clean_up)
                       for part in (ids[:half], ids[-half:]))

    def prompt_ids(self, prompt, task, limit, clean_up):
        prompt = self.cut_middle(prompt, limit, clean_up)
        if task not in NO_TEMPLATE:
            prompt = self.chat(prompt)
        return self.ids(prompt)


if __name__ == "__main__":
    shared, patterns = pathlib.Path(sys.argv[1]), json.loads(pathlib.Path(sys.argv[2]).read_text())
    cases, formats = [], {}
    for name in FAMILIES:
        family = Family(shared, name)
        formats[name] = family.format()
        for path in sorted((shared / "longbench").glob("*.jsonl")):
            task = path.stem.removesuffix("_e")
            with open(path, encoding="utf-8") as file:
                record = json.loads(file.readline())
            for limit in LIMITS:
                for clean_up in [False, True] if limit and name == "llama-3.1" else [False]:
                    # The official code's ids, which hold two BOS where the template has one too.
                    ids = family.prompt_ids(patterns[task].format(**record), task, limit, clean_up)
                    cases.append({"family": name, "file": path.stem, "limit": limit, "clean_up": clean_up,
                                  **facts(ids)})
        print(name, "done")
    result = {
        "versions": {"transformers": transformers.__version__, "tokenizers": tokenizers.__version__},
        "pattern_sha256": {task: hashlib.sha256(text.encode()).hexdigest() for task, text in patterns.items()},
        "formats": formats,
    }
    lines = ",\n".join(json.dumps(case) for case in cases)
    pathlib.Path(sys.argv[3]).write_text(json.dumps(result)[:-1] + f', "cases": [\n{lines}\n]}}\n')
    print(len(cases), "prompts")
