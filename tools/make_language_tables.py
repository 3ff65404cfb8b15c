"""Makes the three tables of `threadkeep/models/language`. Not part of the package; run it by hand:

    pip install --no-deps langidentify==1.0.2 opencc-python-reimplemented==0.1.7   # both Apache-2.0
    python tools/make_language_tables.py

`latin.txt`: log-odds of letter sequences for English, Vietnamese, Polish and any other language in Latin letters, by
a softmax regression over the frequent words that langidentify lists (it counted them in Wikipedia). Every word is
learned twice, as it is and without its diacritics. No evaluation set is read here.

`frequent.txt`: the words that are frequent in each of 33 languages, as langidentify counted them. A word that another
language uses far more often (the English ones that stand in every Wikipedia) is left out.

`han.txt`: the characters that are written in only one of the two Chinese scripts, by OpenCC's conversion tables.
"""

from __future__ import annotations

import gzip
import importlib.util
import math
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from threadkeep.models.language.latin import LETTERS, STEP, folded, sequences_of

TARGET = Path(__file__).parents[1] / "src" / "threadkeep" / "models" / "language"
OTHERS = ["de", "fr", "es", "it", "nl", "pt", "cs", "sk", "sv", "da", "id", "ro", "hu", "fi", "tr", "tl", "hr"]
MORE_OTHERS = ["sl", "no", "ca", "et", "lt", "lv", "af", "eu", "ga", "cy", "is", "sq", "sw"]
NAMED = {"no": "nb"}
CLASSES = (["en"], ["vi"], ["pl"], OTHERS)

FREQUENCY_POWER = 0.5  # between counting every word once and counting it as often as it is written
FOLDED_WEIGHT = 0.6  # how often people leave the diacritics out
MOST_WEIGHT = 100.0  # of one word, in average words
WHOLE_WORDS = 300  # of each language, known as a whole: function words tell more than their letters do
FREQUENT = 300  # of each language, where a fifth of its use in the language that uses it most
BORROWED = 0.2
RARE = 3  # a sequence of fewer words teaches nothing
SMALL = 0.1  # a weight that changes nothing
WRITTEN_BY_BOTH = "台吃唇岩岳游托余咸准吁"  # everyday characters of both, whatever the tables prefer
EPOCHS, BATCH, RATE, DECAY = 20, 512, 0.05, 1e-5


def package_file(package: str, *parts: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"install {package} first; see above")
    return Path(spec.origin).parent.joinpath(*parts)


def frequent_words(language: str) -> list[tuple[str, float]]:
    """With their frequency, most frequent first."""
    path = package_file("langidentify", "models", "lite", f"topwords-{language}.txt.gz")
    lines = gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()
    pairs = (line.split() for line in lines if not line.startswith("#"))
    return [(word, math.exp(float(log))) for word, log in pairs if word.isalpha()]


def lessons() -> dict[str, np.ndarray]:
    """Word → how much of it each class writes."""
    shares: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(len(CLASSES)))
    for column, languages in enumerate(CLASSES):
        for language in languages:
            words = [(word, frequency**FREQUENCY_POWER) for word, frequency in frequent_words(language)]
            total = sum(weight for _, weight in words) * len(languages)
            for word, weight in words:
                shares[word][column] += weight / total
                shares[folded(word)][column] += FOLDED_WEIGHT * weight / total
    return shares


def whole_words() -> set[str]:
    words = {word for (language, *_) in CLASSES[:-1] for word, _ in frequent_words(language)[:WHOLE_WORDS]}
    return words | {folded(word) for word in words}


def trained(shares: dict[str, np.ndarray], whole: set[str]) -> dict[str, np.ndarray]:
    words = sorted(shares)
    target = np.array([shares[word] for word in words])
    weight = target.sum(1)
    target /= weight[:, None]
    weight = np.minimum(weight / weight.mean(), MOST_WEIGHT)
    sequences = [[s for s in sequences_of(word) if len(s) <= LETTERS or s[1:-1] in whole] for word in words]
    counts = Counter(s for those in sequences for s in set(those))
    known = sorted(s for s, count in counts.items() if count >= RARE or s[1:-1] in whole)
    number = {sequence: index for index, sequence in enumerate(known)}
    rows = [np.array([number[s] for s in those if s in number], dtype=np.int32) for those in sequences]
    return dict(zip(known, descent(rows, target, weight, len(known)), strict=True))


def descent(rows: list[np.ndarray], target: np.ndarray, weight: np.ndarray, known: int) -> np.ndarray:
    """AdaGrad on the weighted cross-entropy, from zero, in an order that a seed fixes."""
    classes = target.shape[1]
    weights, squares = np.zeros((known, classes)), np.full((known, classes), 1e-3)
    rng = np.random.default_rng(0)
    for _ in range(EPOCHS):
        order = rng.permutation(len(rows))
        for start in range(0, len(rows), BATCH):
            batch = order[start : start + BATCH]
            flat = np.concatenate([rows[i] for i in batch])
            sample = np.repeat(np.arange(len(batch)), [len(rows[i]) for i in batch])
            error = (softmax(summed(sample, weights[flat], len(batch))) - target[batch]) * weight[batch, None]
            used, place = np.unique(flat, return_inverse=True)
            gradient = summed(place, error[sample], len(used)) / len(batch) + DECAY * weights[used]
            squares[used] += gradient**2
            weights[used] -= RATE * gradient / np.sqrt(squares[used])
    return weights - weights.mean(1, keepdims=True)


def summed(places: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
    return np.stack([np.bincount(places, column, minlength=size) for column in values.T], 1)


def softmax(scores: np.ndarray) -> np.ndarray:
    exponents = np.exp(scores - scores.max(1, keepdims=True))
    return exponents / exponents.sum(1, keepdims=True)


def latin_table(weights: dict[str, np.ndarray]) -> str:
    """One line for each vector of steps: the vector, then the sequences that have it."""
    lines: dict[str, list[str]] = defaultdict(list)
    for sequence, row in weights.items():
        if np.abs(row).max() >= SMALL:
            lines[",".join(str(round(value / STEP)) for value in row)].append(sequence)
    return "".join(f"{vector} {' '.join(sequences)}\n" for vector, sequences in sorted(lines.items()))


def frequent_table() -> str:
    """One line for each language: its tag, then its words, the most frequent first."""
    languages = ["en", "vi", "pl", *OTHERS, *MORE_OTHERS]
    counted = {language: frequent_words(language) for language in languages}
    most: dict[str, float] = defaultdict(float)
    for word, frequency in (pair for pairs in counted.values() for pair in pairs):
        most[word] = max(most[word], frequency)
    lines: list[str] = []
    for language, pairs in counted.items():
        own = [word for word, frequency in pairs if len(word) > 1 and frequency >= BORROWED * most[word]]
        lines.append(f"{NAMED.get(language, language)} {' '.join(own[:FREQUENT])}\n")
    return "".join(lines)


def conversions(name: str) -> dict[str, list[str]]:
    lines = package_file("opencc", "dictionary", name).read_text("utf-8").splitlines()
    return {one: others.split() for one, others in (line.split("\t") for line in lines)}


def han_table() -> str:
    """Proofs are written in one script only; leanings may stay as they are in the other, but seldom do (后, 几, 於)."""
    to_simplified, to_traditional = conversions("TSCharacters.txt"), conversions("STCharacters.txt")
    # What OpenCC takes for simplified may be what Taipei and Hong Kong write: 床, where its own standard has 牀.
    everyday = {
        c for name in ("TWVariants.txt", "HKVariants.txt") for those in conversions(name).values() for c in those
    }
    everyday = (everyday | set(WRITTEN_BY_BOTH)) - set("么")  # rare in Taipei, and in every 什么
    lines: list[str] = []
    for script, theirs, others in (("Hant", to_simplified, to_traditional), ("Hans", to_traditional, to_simplified)):
        written_by_others = {char for those in theirs.values() for char in those}
        proofs = {c for c, those in theirs.items() if c not in those} - written_by_others
        proofs -= everyday if script == "Hans" else set()
        kept_by_others = {c for c in others if c != others[c][0]} | everyday
        leanings = {c for c, those in theirs.items() if those[0] != c} - proofs - kept_by_others
        lines += [f"{script} {in_order(proofs)}", f"{script} ? {in_order(leanings)}"]
    return "\n".join(lines) + "\n"


def in_order(characters: set[str]) -> str:
    return "".join(sorted(filter(common, characters)))


def common(char: str) -> bool:
    """The main block, which names its characters alike; the extensions hold rare ones only."""
    return len(char) == 1 and "\u4e00" <= char <= "\u9fff" and unicodedata.category(char) == "Lo"


LATIN_HEAD = """\
# Made by tools/make_language_tables.py from word frequencies of langidentify 1.0.2 (Jeremy Lilley, Apache-2.0).
# Steps of log-odds for en, vi, pl, other; then the letter sequences that have them; ^ and $ are a word's ends.
"""
FREQUENT_HEAD = """\
# Made by tools/make_language_tables.py from word frequencies of langidentify 1.0.2 (Jeremy Lilley, Apache-2.0).
# A language, then its frequent words.
"""
HAN_HEAD = """\
# Made by tools/make_language_tables.py from the character tables of OpenCC (Carbo Kuo, Apache-2.0).
# Characters that are written in one script of Chinese only; after the question mark, mostly in one.
"""


def main() -> None:
    (TARGET / "han.txt").write_text(HAN_HEAD + han_table(), "utf-8")
    (TARGET / "frequent.txt").write_text(FREQUENT_HEAD + frequent_table(), "utf-8")
    (TARGET / "latin.txt").write_text(LATIN_HEAD + latin_table(trained(lessons(), whole_words())), "utf-8")


if __name__ == "__main__":
    main()
