#!/usr/bin/env python3
"""Golden prompts from transformers' apply_chat_template, for tests/harness/text/prompt_format_test.

    python tests/golden/make_prompt_formats.py SHARED_DATA     (needs transformers)

Writes tests/golden/prompts.json: per template and user text the length and SHA-256 of the prompt.
Templates that print today's date get the fixed date that kvlab renders with.
"""

import hashlib
import json
import pathlib
import sys

import tokenizers
import transformers

OUT = pathlib.Path(__file__).resolve().parent / "prompts.json"
USER_TEXTS = ["Hello", "two\nlines", "  spaces around \n", "", " ", "\x1c odd \u3000", "\u4e2d\u6587 {{ x }} {% y %}",
              "<|im_end|> [INST] x [/INST]", "a  b\t\tc"]


def templates(data):
    configs = data / "model_configs"
    for path in sorted(configs.glob("*/chat_template*.jinja")):
        yield str(path.relative_to(data)), path.read_text(encoding="utf-8")
    for path in sorted(configs.glob("*/tokenizer_config.json")):
        template = json.loads(path.read_text(encoding="utf-8")).get("chat_template")
        if isinstance(template, str):
            yield str(path.relative_to(data)), template


def main():
    data = pathlib.Path(sys.argv[1])
    backend = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<BOS>",
                                                     eos_token="<EOS>")
    found = {}
    for name, template in templates(data):
        prompts = [tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], chat_template=template, tokenize=False,
            add_generation_prompt=True, enable_thinking=False, date_string="26 Jul 2024")
            for text in USER_TEXTS]
        found[name] = [{"bytes": len(p.encode()), "sha256": hashlib.sha256(p.encode()).hexdigest()}
                       for p in prompts]
    OUT.write_text(json.dumps({
        "info": {"script": "make_prompt_formats.py", "transformers": transformers.__version__},
        "user_texts": USER_TEXTS, "templates": found}, indent=1) + "\n")
    print(OUT.name, len(found), "templates")


if __name__ == "__main__":
    main()
