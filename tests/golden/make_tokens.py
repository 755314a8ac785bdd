#!/usr/bin/env python3
"""Golden token ids from Hugging Face tokenizers, for tests/harness/text.

    python tests/golden/make_tokens.py SHARED_DATA     (needs tokenizers; writes tests/golden/tokens)

corpus.json: per model and file, of every string in it: count and SHA-256 of ids and decoded text.
strings.json: random strings and hand-made ones with ids (or their hashes) for every model.
components.json: small tokenizers that cover every component kvlab knows, with ids and texts.
"""

import hashlib
import json
import pathlib
import random
import sys
import unicodedata

import tokenizers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

OUT = pathlib.Path(__file__).resolve().parent / "tokens"
MODELS = ("SmolLM2-135M-Instruct", "Llama-3.1-8B-Instruct", "Qwen3-8B", "Mistral-7B-Instruct-v0.2")
INFO = {"script": "make_tokens.py", "tokenizers": tokenizers.__version__,
        "python": sys.version.split()[0], "unicodedata": unicodedata.unidata_version}
SEPARATOR = "\n__ggml_vocab_test__\n"


def strings_in(value):
    """Every string value below `value`; objects by key, so that any JSON reader finds the order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)
    elif isinstance(value, dict):
        for key in sorted(value):
            yield from strings_in(value[key])


def strings_of(path):
    text = path.read_bytes().decode("utf-8")
    if path.suffix == ".inp":
        return text.split(SEPARATOR)
    if path.suffix == ".jsonl":
        return [s for line in text.split("\n") if line.strip() for s in strings_in(json.loads(line))]
    if path.suffix == ".json":
        return list(strings_in(json.loads(text)))
    return None


class Digest:
    def __init__(self):
        self.count, self.ids, self.text = 0, hashlib.sha256(), hashlib.sha256()

    def add(self, tokenizer, string, special):
        ids = tokenizer.encode(string, add_special_tokens=special).ids
        self.count += len(ids)
        self.ids.update((",".join(map(str, ids)) + "\n").encode())
        decoded = tokenizer.decode(ids, skip_special_tokens=True)
        self.text.update((decoded + "\n").encode())

    def result(self):
        return {"tokens": self.count, "ids_sha256": self.ids.hexdigest(),
                "text_sha256": self.text.hexdigest()}


def digest(tokenizer, strings, special=False):
    made = Digest()
    for string in strings:
        made.add(tokenizer, string, special)
    return made.result()


def corpus(data, loaded):
    files = sorted(p for folder in ("model_configs/tokenizer_test_vectors", "longbench")
                   for p in (data / folder).iterdir() if strings_of(p) is not None)
    found = {}
    for path in files:
        strings = strings_of(path)
        found[str(path.relative_to(data))] = {
            "strings": len(strings),
            "file_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "models": {name: digest(t, strings) for name, t in loaded.items()},
            "models_special": {name: digest(t, strings, True) for name, t in loaded.items()}
            if "vectors" in str(path) else {},
        }
        print(path.name, len(strings), flush=True)
    return {"info": INFO, "files": found}


POOLS = [(0x41, 0x7A), (0x61, 0x7A), (0x20, 0x40), (0x09, 0x0D), (0x30, 0x39), (0x20, 0x20),
         (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x52F), (0x590, 0x6FF), (0x900, 0xDFF),
         (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2100, 0x218F), (0x3000, 0x30FF),
         (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xFB00, 0xFFFD), (0x10000, 0x10FFFF), (0, 0x10FFFF),
         (0x1F300, 0x1F64F), (0x180B, 0x180E)]
SNIPPETS = ["'s", "'LL", "\u017f", "'\u017f", "<|im_end|>", "<|im_start|>", "</s>", "<s>", "<unk>",
            "<|begin_of_text|>", "<|eot_id|>", "<think>", "\r\n", "\n\n", "   ", "\u2581", "<0x41>",
            "\u0130", "e\u0301", "\u200d", "\ufeff", "\u0085"]


def random_strings(count, seed):
    rng = random.Random(seed)
    nfc = normalizers.NFC()
    strings, skipped = [], 0
    while len(strings) < count:
        out = []
        for _ in range(rng.randrange(1, 24)):
            if rng.random() < 0.15:
                out.append(rng.choice(SNIPPETS))
                continue
            low, high = rng.choice(POOLS)
            for _ in range(rng.randrange(1, 6)):
                char = chr(rng.randint(low, high))
                # Unassigned by Unicode 14: later versions disagree about them.
                if unicodedata.category(char) not in ("Cn", "Cs"):
                    out.append(char)
        string = "".join(out)
        if unicodedata.normalize("NFC", string) != nfc.normalize_str(string):
            skipped += 1  # Hugging Face's NFC data is older than any current library's
            continue
        strings.append(string)
    return strings, skipped


HAND_MADE = [
    "", " ", "  ", "\n", "a", "Hello, world!", " leading and trailing ", "1234567890 12 345",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<s>[INST] Hi [/INST]", "a<s>b</s> c",
    "<s> x", "x <s>", "<unk>", "<|begin_of_text|>twice<|begin_of_text|>", "<think>\n\n</think>\n\n",
    "<|endoftext|>", "<|end_of_text|> <|eot_id|>x", "I'm you'll HE'S they'Re", "\u4e2d\u6587\u5b57",
    "\u2581\u2581a \u2581 b", "tab\tnew\r\nline", "\U0001f999\U0001f600", "\u00e9 e\u0301 \u1100\u1161",
    "<|im_end", "\x00\x01\x7f", "<0x0A>", "caf\u00e9\u180e\u0085x",
]


def strings(loaded):
    randoms, skipped = random_strings(1500, 20240726)
    print("random strings left out for NFC data:", skipped)
    single = {}
    for char in ("a", " ", "\n", "\u4e2d", "!"):
        text = char * (2_000_000 // len(char.encode()))
        single[char] = {name: digest(t, [text]) for name, t in loaded.items()}
        print("2 MB of", repr(char), flush=True)
    return {
        "info": {**INFO, "skipped_for_nfc": skipped},
        "random": randoms,
        "random_block": 50,
        "random_digests": {name: [digest(t, randoms[i:i + 50]) for i in range(0, len(randoms), 50)]
                           for name, t in loaded.items()},
        "hand_made": [{"text": s, "models": {name: {
            "ids": t.encode(s, add_special_tokens=False).ids,
            "special_ids": t.encode(s, add_special_tokens=True).ids,
            "decoded": t.decode(t.encode(s).ids, skip_special_tokens=True),
            "decoded_special": t.decode(t.encode(s).ids, skip_special_tokens=False)}
            for name, t in loaded.items()}} for s in HAND_MADE],
        "two_megabytes_of": single,
    }


# --- components --------------------------------------------------------------------------------

SENTENCES = [
    "the quick brown fox jumps over the lazy dog", "low lower lowest newer newest wider widest",
    "the cat sat on the mat and the dog sat on the log", "counting 123 and 456 and 7890",
    "it's what we'll see, isn't it? they've been there", "\u00fcber na\u00efve caf\u00e9 \u4e2d\u6587",
] * 4
COMPONENT_TEXTS = [
    "", " ", "the lowest", "  the   lowest  ", "The CAT sat, 12 34!", "it's the dog's 789.",
    "caf\u00e9 cafe\u0301 \u0130stanbul", "\u4e2d\u6587 xyz", "a-b--c---d", "-a-", "--", "a\nb\n\nc \n d",
    "\ttab\u00a0nbsp\u3000wide", "\u2581the\u2581\u2581cat \u2581", "x<a>y", "<a>", " <a> <a>", "the <a>the",
    "<b> <b>", "w<c>w", "w <c> w", "<c>", "(<c>)", "caf\u00e9<c>", "THE Tok end", "the tok tok", "<a><b><c>",
    "<s>the</s>", "\u00bd\u2163\u0663 12x", "\U0001f600 \U0001f601", "q\x00z", "low<d> low", "<d>", "<dd>x",
    "\u0301x", "  \n  ", "1", "1a2b", "the\u180ecat\u0085dog",
]
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
BYTE_DECODER = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
META = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
META_DECODER = dict(META)
LLAMA_DECODER = {"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
    {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
BEHAVIORS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")


def trained(size, model, pre_tokenizer, **options):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(SENTENCES, trainers.BpeTrainer(vocab_size=size,
                                                                 show_progress=False, **options))
    return json.loads(tokenizer.to_str())["model"]


def small_models():
    made = {
        "bytes": trained(340, models.BPE(), pre_tokenizers.ByteLevel(add_prefix_space=False),
                         initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
        "meta": trained(140, models.BPE(unk_token="<unk>"), pre_tokenizers.Metaspace(),
                        special_tokens=["<unk>", "<s>", "</s>"]),
        "suffix": trained(140, models.BPE(unk_token="<unk>"), pre_tokenizers.Whitespace(),
                          special_tokens=["<unk>"], end_of_word_suffix="</w>"),
        "prefix": trained(140, models.BPE(unk_token="<unk>"), pre_tokenizers.Whitespace(),
                          special_tokens=["<unk>"], continuing_subword_prefix="##"),
    }
    fallback = json.loads(json.dumps(made["meta"]))
    for byte in range(256):
        fallback["vocab"].setdefault(f"<0x{byte:02X}>", len(fallback["vocab"]))
    fallback["byte_fallback"] = True
    made["fallback"] = fallback
    return made


def added(content, token_id, **flags):
    return {"id": token_id, "content": content, "single_word": False, "lstrip": False,
            "rstrip": False, "normalized": False, "special": True, **flags}


def component_cases(small):
    cases = []

    def case(name, model, model_patch=None, **parts):
        cases.append({"name": name, "model": model, "model_patch": model_patch or {},
                      "parts": {"normalizer": None, "pre_tokenizer": None, "post_processor": None,
                                "decoder": None, "added_tokens": [], **parts}})

    def sequence(*steps):
        return {"type": "Sequence", "pretokenizers": list(steps)}

    end = {name: max(m["vocab"].values()) + 1 for name, m in small.items()}
    byte_parts = {"pre_tokenizer": BYTE_LEVEL, "decoder": BYTE_DECODER}
    case("byte level", "bytes", **byte_parts)
    case("merges as pairs", "bytes",
         {"merges": [m if isinstance(m, list) else m.split(" ") for m in small["bytes"]["merges"]]},
         **byte_parts)
    case("merges as strings", "bytes",
         {"merges": [" ".join(m) if isinstance(m, list) else m for m in small["bytes"]["merges"]]},
         **byte_parts)
    case("prefix space", "bytes", pre_tokenizer={**BYTE_LEVEL, "add_prefix_space": True},
         decoder=BYTE_DECODER)
    case("no words", "bytes", pre_tokenizer={**BYTE_LEVEL, "use_regex": False}, decoder=BYTE_DECODER)
    case("ignore merges", "bytes", {"ignore_merges": True, "merges": small["bytes"]["merges"][:20]},
         **byte_parts)
    case("no decoder", "bytes", pre_tokenizer=BYTE_LEVEL)
    for behavior in BEHAVIORS:
        for invert in (False, True):
            for pattern in ({"Regex": "-+|\\s"}, {"String": "-"}):
                case(f"split {behavior} {'inverted ' if invert else ''}{next(iter(pattern))}", "bytes",
                     pre_tokenizer=sequence({"type": "Split", "pattern": pattern,
                                             "behavior": behavior, "invert": invert},
                                            {**BYTE_LEVEL, "use_regex": False}),
                     decoder=BYTE_DECODER)
    for regex in ("\\s", "\\S+", "[^\\s\\p{L}]+", "(?i:the)|\\d", "^.", "\\p{N}{1,3}", ".$", "(?m:a.b)",
                  "\\u4e2d|[\\u0041-\\u0043]", "", "x*", "(?=a)", "\\s+(?!\\S)|\\s+", "\\p{L}++\\s?"):
        case(f"regex {regex}", "bytes",
             pre_tokenizer=sequence({"type": "Split", "pattern": {"Regex": regex},
                                     "behavior": "Isolated", "invert": False},
                                    {**BYTE_LEVEL, "use_regex": False}), decoder=BYTE_DECODER)
    for individual in (True, False):
        case(f"digits {individual}", "bytes", decoder=BYTE_DECODER,
             pre_tokenizer=sequence({"type": "Digits", "individual_digits": individual}, BYTE_LEVEL))
    case("byte level in the middle", "bytes", decoder=BYTE_DECODER,
         pre_tokenizer=sequence(BYTE_LEVEL, {"type": "Split", "pattern": {"String": "t"},
                                             "behavior": "MergedWithNext", "invert": False}))
    forms = {name: {"type": name} for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase")}
    forms["strip"] = {"type": "Strip", "strip_left": True, "strip_right": True}
    forms["strip left"] = {"type": "Strip", "strip_left": True, "strip_right": False}
    forms["prepend"] = {"type": "Prepend", "prepend": "-"}
    forms["replace"] = {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": "_"}
    forms["replace text"] = {"type": "Replace", "pattern": {"String": "the"}, "content": ""}
    forms["several"] = {"type": "Sequence", "normalizers": [
        forms["strip"], {"type": "Sequence", "normalizers": [forms["Lowercase"], forms["NFC"]]}]}
    tokens = [added("<a>", end["bytes"], lstrip=True),
              added("<b>", end["bytes"] + 1, rstrip=True, special=False),
              added("<c>", end["bytes"] + 2, single_word=True),
              added("Tok", end["bytes"] + 3, normalized=True, special=False),
              added("<d>", end["bytes"] + 4, lstrip=True, rstrip=True),
              added("<dd>", end["bytes"] + 5), added("the lowest", end["bytes"] + 6, special=False),
              added("caf\u00e9", end["bytes"] + 7, normalized=True, single_word=True)]
    for name, form in {"none": None, **forms}.items():
        case(f"normalizer {name}", "bytes", normalizer=form, **byte_parts)
        case(f"added tokens, normalizer {name}", "bytes", normalizer=form, added_tokens=tokens,
             **byte_parts)
    special = [added(t, small["meta"]["vocab"][t]) for t in ("<unk>", "<s>", "</s>")]
    for scheme in ("always", "first", "never"):
        for split in (True, False):
            pre = {**META, "prepend_scheme": scheme, "split": split}
            case(f"metaspace {scheme} {split}", "meta", pre_tokenizer=pre, added_tokens=special,
                 decoder={**META_DECODER, "prepend_scheme": scheme})
    for fuse in (True, False):
        for model in ("meta", "fallback"):
            case(f"llama 2 style, {model}, fuse_unk {fuse}", model, {"fuse_unk": fuse},
                 normalizer={"type": "Sequence", "normalizers": [
                     {"type": "Prepend", "prepend": "\u2581"},
                     {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
                 added_tokens=special, decoder=LLAMA_DECODER,
                 post_processor={"type": "TemplateProcessing",
                                 "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                                            {"Sequence": {"id": "A", "type_id": 0}},
                                            {"SpecialToken": {"id": "</s>", "type_id": 0}}],
                                 "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                                          {"Sequence": {"id": "B", "type_id": 0}}],
                                 "special_tokens": {t: {"id": t, "ids": [small["meta"]["vocab"][t]],
                                                        "tokens": [t]} for t in ("<s>", "</s>")}})
    no_unknown = {"unk_token": None}
    case("no unknown token", "meta", no_unknown, pre_tokenizer=META, decoder=META_DECODER)
    strip = {"type": "Sequence", "decoders": [
        {"type": "Strip", "content": "e", "start": 0, "stop": 1},
        {"type": "Strip", "content": "t", "start": 2, "stop": 0}, {"type": "Fuse"},
        {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": "."}]}
    case("strip decoder", "meta", pre_tokenizer=META, decoder=strip)
    spaces = sequence({"type": "Split", "pattern": {"String": " "}, "behavior": "Removed",
                       "invert": False})
    case("end of word suffix", "suffix", pre_tokenizer=spaces)
    case("continuing subword prefix", "prefix", pre_tokenizer=spaces)
    return cases


def components():
    small = small_models()
    cases = component_cases(small)
    for case in cases:
        parts = case["parts"]
        whole = {"version": "1.0", "truncation": None, "padding": None, **parts,
                 "model": {**small[case["model"]], **case["model_patch"]}}
        tokenizer = Tokenizer.from_str(json.dumps(whole))
        case["ids"] = [tokenizer.encode(s, add_special_tokens=True).ids for s in COMPONENT_TEXTS]
        case["decoded"] = [tokenizer.decode(ids, skip_special_tokens=True) for ids in case["ids"]]
        case["decoded_special"] = [tokenizer.decode(ids, skip_special_tokens=False)
                                   for ids in case["ids"]]
    return {"info": INFO, "models": small, "texts": COMPONENT_TEXTS, "cases": cases}


def write(name, value):
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / name
    path.write_text(json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n")
    print(path.name, path.stat().st_size // 1024, "KB", flush=True)


def main():
    data = pathlib.Path(sys.argv[1])
    write("components.json", components())
    loaded = {name: Tokenizer.from_file(str(data / "model_configs" / name / "tokenizer.json"))
              for name in MODELS}
    write("strings.json", strings(loaded))
    write("corpus.json", corpus(data, loaded))


if __name__ == "__main__":
    main()
