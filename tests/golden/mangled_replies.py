"""Mangled replies, derived from a seed exactly as tests/benchmarks/longbench/mangled_replies.cpp does.

Both sides work on code points with the same generator (splitmix64), so only the recipe of a reply
is stored: what it is made from, the kind of damage and a seed.
"""

KINDS = [
    "as_is", "empty", "no_periods", "control_characters", "huge", "with_reference",
    "damaged_reference", "reversed", "leading_white_space", "numbers", "shuffled_words", "soup",
    "code_fence", "other_reply", "long_sentence", "wide_case",
]

CONTROLS = [0x00, 0x07, 0x08, 0x0A, 0x0B, 0x0C, 0x0D, 0x1C, 0x1F, 0x7F, 0x85, 0xA0, 0x200B, 0x2028,
            0x3000, 0xFEFF, 0xFFFD]
SOUP = [0x20, 0x20, 0x20, 0x0A, 0x2E, 0x2E, 0x2C, 0x61, 0x62, 0x41, 0x5A, 0x31, 0x39, 0x660, 0x130,
        0x3A3, 0x3B1, 0x391, 0xDF, 0x1C5, 0x301, 0x4E00, 0x4E2D, 0x56FD, 0x9FD5, 0x9FD6, 0x3002,
        0xFF0C, 0xFF21, 0x1F600, 0x10FFFF, 0x2B, 0x25, 0x2D, 0x23, 0x60, 0x2F]
NUMBERS = ["1", "2 ", "Paragraph 3 ", "\u6bb5\u843d5", " 17.", "\u0664\u0662", "30", " 007 "]

MASK = (1 << 64) - 1


class Random:
    """splitmix64."""

    def __init__(self, seed: int):
        self.state = seed & MASK

    def next(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, bound: int) -> int:
        return self.next() % bound


def mangle(kind: str, reply: str, reference: str, other: str, random: Random) -> str:
    if kind == "as_is":
        return reply
    if kind == "empty":
        return ""
    if kind == "no_periods":
        return reply.replace(".", "")
    if kind == "control_characters":
        out = []
        for c in reply:
            if random.below(8) == 0:
                out.append(chr(CONTROLS[random.below(len(CONTROLS))]))
            out.append(c)
        return "".join(out)
    if kind == "huge":
        base = reply or "x y. "
        return base * (20000 // len(base) + 1)
    if kind == "with_reference":
        at = random.below(len(reply) + 1)
        return reply[:at] + " " + reference + "\n" + reply[at:]
    if kind == "damaged_reference":
        return "".join(c for c in reference if random.below(10) != 0)
    if kind == "reversed":
        return reply[::-1]
    if kind == "leading_white_space":
        return "\n\n"[: random.below(3)] + " \t\u3000"[: random.below(4)] + reference + "\n" + reply
    if kind == "numbers":
        return "".join(NUMBERS[random.below(len(NUMBERS))] for _ in range(1 + random.below(5))) + reference
    if kind == "shuffled_words":
        words = reference.split(" ")
        for i in range(len(words) - 1, 0, -1):
            j = random.below(i + 1)
            words[i], words[j] = words[j], words[i]
        return " ".join(words)
    if kind == "soup":
        return "".join(chr(SOUP[random.below(len(SOUP))]) for _ in range(random.below(400)))
    if kind == "code_fence":
        return "\n```python\n# comment\n" + reference + "\nx = 1 // 2\n```"
    if kind == "other_reply":
        return other
    if kind == "long_sentence":  # around the depth at which Python gives up
        words = (reference + " " + reply).replace(".", " ").split(" ")
        return " ".join(words[i % len(words)] for i in range(900 + random.below(200)))
    if kind == "wide_case":
        return (reply + reference).replace("i", "\u0130").replace("s", "\u03a3").replace("a ", "\u00c4 ")
    raise ValueError(kind)
