#!/usr/bin/env python3
"""Golden scores for LongBench replies, from the original Python packages.

Needs rouge==1.0.1, jieba==0.42.1, fuzzywuzzy==0.18.0, python-Levenshtein==0.27.5 and the
predictions in the shared data folder. The scorer below is written against those packages from the
facts in docs/longbench.md; before anything is stored it must give the published result.json of
both runs.

    python3 tests/golden/make_longbench_scores.py SHARED_DATA tests/golden/longbench [PART...]

Parts: scores (half an hour on a busy machine), synthetic_scores, unicode; all by default.
"""

import collections
import hashlib
import importlib
import importlib.metadata
import json
import logging
import pathlib
import re
import string
import sys
import unicodedata
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import jieba  # noqa: E402
from rouge import Rouge  # noqa: E402

from mangled_replies import KINDS, Random, mangle  # noqa: E402

SEED = 20240229
REAL_CASES = 2000
SYNTHETIC_CASES = 200
RUNS = ["llama2-7b-chat-quest-128", "llama3-8b-quest-256"]
METRIC_OF_TASK = {
    "narrativeqa": "f1", "qasper": "f1", "multifieldqa_en": "f1", "multifieldqa_zh": "f1_zh",
    "hotpotqa": "f1", "2wikimqa": "f1", "musique": "f1", "dureader": "rouge_zh",
    "gov_report": "rouge", "qmsum": "rouge", "multi_news": "rouge", "vcsum": "rouge_zh",
    "trec": "classification", "triviaqa": "f1", "samsum": "rouge", "lsht": "classification",
    "passage_count": "count", "passage_retrieval_en": "retrieval",
    "passage_retrieval_zh": "retrieval_zh", "lcc": "code", "repobench-p": "code",
}
FIRST_LINE_TASKS = {"trec", "triviaqa", "samsum", "lsht"}
ZH_MARKS = set(
    "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】〔〕〖〗〘〙〚〛〜〝〞〟〰"
    "〾〿–—‘’‛“”„‟…‧﹏." + string.punctuation)


def load_fuzz(with_levenshtein: bool):
    """fuzzywuzzy.fuzz, imported with or without sight of python-Levenshtein."""
    for name in [n for n in sys.modules if n.startswith(("fuzzywuzzy", "Levenshtein"))]:
        del sys.modules[name]
    if not with_levenshtein:
        sys.modules["Levenshtein"] = None
    fuzz = importlib.import_module("fuzzywuzzy.fuzz")
    expected = "fuzzywuzzy.StringMatcher" if with_levenshtein else "difflib"
    assert fuzz.SequenceMatcher.__module__ == expected, fuzz.SequenceMatcher.__module__
    return fuzz


FUZZ = {"code": load_fuzz(False), "code_levenshtein": load_fuzz(True)}


def bag_f1(left, right):
    same = sum((collections.Counter(left) & collections.Counter(right)).values())
    if not same:
        return 0.0
    p, r = same / len(left), same / len(right)
    return (2 * p * r) / (p + r)


def words_en(text):
    kept = "".join(c for c in text.lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", kept).split()


def words_zh(text):
    cut = ("".join("".join(c for c in w.lower() if c not in ZH_MARKS).split()) for w in jieba.cut(text))
    return [w for w in cut if w]


def f1(reply, reference, classes):
    return bag_f1(words_en(reply), words_en(reference))


def f1_zh(reply, reference, classes):
    return bag_f1(words_zh(reply), words_zh(reference))


# The two ROUGE functions sit as deep in the call stack as LongBench's do (module, scorer, metric),
# because Python's recursion limit decides whether a long sentence scores at all.
def rouge(reply, reference, classes):
    scorer = Rouge()
    try:
        return scorer.get_scores([reply], [reference], avg=True)["rouge-l"]["f"]
    except Exception:
        return 0.0


def rouge_zh(reply, reference, classes):
    reply, reference = " ".join(jieba.cut(reply)), " ".join(jieba.cut(reference))
    return rouge(reply, reference, classes)


def share_of_numbers(reply, wanted):
    numbers = re.findall(r"\d+", reply)
    return numbers.count(wanted) / len(numbers) if numbers else 0.0


def count(reply, reference, classes):
    return share_of_numbers(reply, str(reference))


def retrieval(reply, reference, classes):
    return share_of_numbers(reply, re.findall(r"Paragraph (\d+)", reference)[0])


def retrieval_zh(reply, reference, classes):
    return share_of_numbers(reply, re.findall("\u6bb5\u843d(\\d+)", reference)[0])


def classification(reply, reference, classes):
    matches = [name for name in classes if name in reply]
    for name in matches:  # changed while walked, as in the original
        if name in reference and name != reference:
            matches.remove(name)
    return 1.0 / len(matches) if reference in matches else 0.0


def code_with(fuzz, reply, reference):
    lines = reply.lstrip("\n").split("\n")
    line = next((x for x in lines if "`" not in x and "#" not in x and "//" not in x), "")
    return fuzz.ratio(line, reference) / 100


def code(reply, reference, classes):
    return code_with(FUZZ["code"], reply, reference)


def code_levenshtein(reply, reference, classes):
    return code_with(FUZZ["code_levenshtein"], reply, reference)


METRICS = {f.__name__: f for f in (f1, f1_zh, rouge, rouge_zh, count, retrieval, retrieval_zh,
                                   classification, code, code_levenshtein)}


def best_score(metric, first_line, reply, references, classes):
    if first_line:
        reply = reply.lstrip("\n").split("\n")[0]
    best = 0.0
    for reference in references:
        best = max(best, METRICS[metric](reply, reference, classes))
    return best


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def short_hash(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def unicode_table():
    """What Python says of every assigned code point, as hashes, with the ranges they cover."""
    ranges, characters = [], []
    for c in range(0x110000):
        if unicodedata.category(chr(c)) in ("Cn", "Cs"):
            continue
        characters.append(chr(c))
        if ranges and ranges[-1][1] == c - 1:
            ranges[-1][1] = c
        else:
            ranges.append([c, c])

    def digest(text):
        return hashlib.sha256(text.encode()).hexdigest()

    def bits(pattern):
        return digest("".join("1" if re.match(pattern, c) else "0" for c in characters))

    return {
        "unicode": unicodedata.unidata_version,
        "ranges": ranges,
        "lower": digest("".join(c.lower() for c in characters)),
        "lower_after_sigma": digest("".join(("A\u03a3" + c).lower() for c in characters)),
        "lower_before_sigma": digest("".join((c + "\u03a3").lower() for c in characters)),
        "lower_between": digest("".join(("A" + c + "\u03a3").lower() for c in characters)),
        "word": bits(r"\w"), "digit": bits(r"\d"), "space": bits(r"\s"),
    }


def synthetic_case(random):
    """A reply of our own making, a reference for each metric, and class names, some in the reply."""
    vocabulary = [
        "the", "a", "an", "cat", "Cat.", "dog", "ran", "10", "22", "Paragraph", "x=1", "foo(bar)",
        "\u4e2d\u56fd", "\u4eba\u6c11\u94f6\u884c", "\u5f20\u4e09\u4e30", "\u8bf4", "\u6bb5\u843d", "\u300a\u4e66\u300b", "\u3002", ".",
        "...", "\n", "  ", "don't", "\u00e9t\u00e9", "\u0130stanbul", "\u039f\u0394\u039f\u03a3", "+5%", "3.14"]

    def text(n):
        return "".join(vocabulary[random.below(len(vocabulary))] + (" " if random.below(3) else "")
                       for _ in range(n))

    reference = text(random.below(30))
    reply = mangle(KINDS[random.below(len(KINDS))], text(random.below(60)), reference, text(8), random)
    classes = ["cat", "ca", "t", "dog", "at", "Cat", "c"] + [text(1) for _ in range(3)]
    number = [10, 22, 1, 5, 3, 14][random.below(6)]
    references = {name: reference for name in METRICS}
    references["classification"] = classes[random.below(len(classes))]
    references["count"] = str(number)
    references["retrieval"] = references["retrieval_zh"] = f"Paragraph {number} \u6bb5\u843d{number}"
    return reply, references, classes


if __name__ == "__main__":
    shared, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    parts = sys.argv[3:] or ["scores", "synthetic_scores", "unicode"]
    # The call depth here must be that of LongBench's eval.py, or long sentences score differently.
    for n, alive in ((990, True), (991, False)):
        text = " ".join(str(i) for i in range(n))
        assert (best_score("rouge", False, text, [text], []) > 0) == alive, n
    data = {}
    for run in RUNS if "scores" in parts else []:
        folder = shared / "longbench_predictions" / run
        published = json.loads((folder / "result.json").read_text())
        for task, metric in METRIC_OF_TASK.items():
            lines = data[run, task] = read_lines(folder / f"{task}.jsonl")
            total = 0.0
            for line in lines:
                total += best_score(metric, task in FIRST_LINE_TASKS, line["pred"], line["answers"],
                                    lines[-1]["all_classes"])
            assert round(100 * total / len(lines), 2) == published[task], (run, task)
        print(run, "equals its result.json")

    random = Random(SEED)
    tasks = sorted(METRIC_OF_TASK)
    cases = []
    for i in range(REAL_CASES if "scores" in parts else 0):
        kind = KINDS[i % len(KINDS)]
        run = RUNS[random.below(2)]
        task = tasks[(i // len(KINDS)) % len(tasks)] if kind != "soup" else tasks[random.below(len(tasks))]
        lines = data[run, task]
        index = random.below(len(lines))
        other_task = tasks[random.below(len(tasks))]
        other_index = random.below(150)
        seed = random.next()
        line = lines[index]
        reply = mangle(kind, line["pred"], line["answers"][0], data[run, other_task][other_index]["pred"],
                       Random(seed))
        metric = METRIC_OF_TASK[task]
        case = {"run": run, "task": task, "line": index, "kind": kind, "other_task": other_task,
                "other_line": other_index, "seed": str(seed), "reply": short_hash(reply),
                "score": best_score(metric, task in FIRST_LINE_TASKS, reply, line["answers"], line["all_classes"])}
        if metric == "code":
            case["levenshtein"] = best_score("code_levenshtein", False, reply, line["answers"], None)
        cases.append(case)

    random = Random(SEED + 1)
    synthetic = []
    while len(synthetic) < SYNTHETIC_CASES:
        reply, references, classes = synthetic_case(random)
        if len(reply) > 3000:
            continue
        scores = {name: best_score(name, False, reply, [references[name]], classes) for name in METRICS}
        synthetic.append({"reply": reply, "references": references, "classes": classes, "scores": scores,
                          "words": list(jieba.cut(reply))})

    versions = {name: importlib.metadata.version(name)
                for name in ("rouge", "jieba", "fuzzywuzzy", "python-Levenshtein")}
    versions["python"] = sys.version.split()[0]
    out.mkdir(parents=True, exist_ok=True)
    for name, content in (("scores", cases), ("synthetic_scores", synthetic)):
        text = ",\n".join(json.dumps(case, sort_keys=True) for case in content)
        if name in parts:
            (out / f"{name}.json").write_text(
                f'{{"versions": {json.dumps(versions)}, "seed": {SEED}, "cases": [\n{text}\n]}}\n')
    if "unicode" in parts:
        (out / "unicode.json").write_text(json.dumps(unicode_table()) + "\n")
    print(len(cases), "cases from real replies,", len(synthetic), "of our own")
