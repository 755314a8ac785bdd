"""Statistics of SciPy and statsmodels on fixed numbers, for tests/reports/statistics_test.cpp.

    python -m venv venv && venv/bin/pip install numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0
    venv/bin/python make_statistics.py        # writes statistics.json beside it

Nothing here reads output of kvlab. The bootstrap's indices are drawn here, given to SciPy in the place
of its random numbers, and stored, so that the C++ resamples exactly the same rows.
"""

import json
import pathlib
import platform

import numpy as np
import scipy
import scipy.stats as st
import statsmodels
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

CONFIDENCE = 0.95
# Scores as benchmarks give them: whole steps with many ties, plain numbers, a constant, two values.
SAMPLES = {
    "steps_of_20": [0, 20, 100, 80, 80, 60, 100, 100, 0, 40, 60, 100],
    "zero_or_100": [0, 100, 100, 0, 100, 100, 100, 100],
    "two": [12.5, 40.25],
    "constant": [60, 60, 60, 60, 60],
    "real": [41.7, 3.25, 99.1, 50.0, 12.875, 63.2, 77.7, 21.3, 35.9, 18.4, 5.5, 88.8, 47.1, 29.6, 70.2],
}


class GivenIndices(np.random.RandomState):
    """Hands out stored indices where SciPy asks for random ones."""

    def __init__(self, indices):
        super().__init__(0)
        self.indices = indices

    def randint(self, low, high=None, size=None, dtype=int):
        assert (low, high, tuple(size)) == (0, self.indices.shape[1], self.indices.shape)
        return self.indices

    random_integers = None


def t_intervals():
    cases = []
    for name, values in SAMPLES.items():
        values = np.asarray(values, float)
        se = st.sem(values)
        if se == 0:
            low = high = values.mean()
        else:
            low, high = st.t.interval(CONFIDENCE, len(values) - 1, loc=values.mean(), scale=se)
        cases.append({"name": name, "values": values.tolist(), "mean": values.mean(),
                      "standard_error": se, "low": low, "high": high})
    return cases


def means_of_means():
    cases = []
    # Two groups: SciPy's Welch test of a against -b, halved, is the interval of the mean of both means.
    for a, b in [("steps_of_20", "real"), ("zero_or_100", "steps_of_20"), ("two", "real")]:
        x, y = (np.asarray(SAMPLES[k], float) for k in (a, b))
        test = st.ttest_ind(x, -y, equal_var=False)
        interval = test.confidence_interval(CONFIDENCE)
        cases.append({"groups": [x.tolist(), y.tolist()], "mean": (x.mean() + y.mean()) / 2,
                      "degrees": test.df, "low": interval.low / 2, "high": interval.high / 2})
    # More groups: the Welch-Satterthwaite formula with SciPy's quantile.
    groups = [np.asarray(SAMPLES[k], float) for k in ("steps_of_20", "zero_or_100", "real", "constant")]
    variances = np.array([g.var(ddof=1) / len(g) for g in groups]) / len(groups) ** 2
    degrees = variances.sum() ** 2 / sum(v**2 / (len(g) - 1) for v, g in zip(variances, groups))
    mean = np.mean([g.mean() for g in groups])
    low, high = st.t.interval(CONFIDENCE, degrees, loc=mean, scale=np.sqrt(variances.sum()))
    cases.append({"groups": [g.tolist() for g in groups], "mean": mean, "degrees": degrees,
                  "low": low, "high": high})
    return cases


def medians():
    cases = []
    rng = np.random.default_rng(5)
    for size in (3, 5, 6, 7, 12, 15, 40, 101):
        values = np.round(rng.gamma(2.0, 10.0, size), 3)
        low, high = st.quantile_test(values, q=0, p=0.5).confidence_interval(CONFIDENCE)
        known = bool(np.isfinite(low) and np.isfinite(high))
        cases.append({"values": values.tolist(), "median": float(np.median(values)),
                      "low": low if known else None, "high": high if known else None})
    return cases


def quantiles():
    values = np.asarray(SAMPLES["real"])
    return [{"values": values.tolist(), "q": q, "value": float(np.quantile(values, q))}
            for q in (0.0, 0.025, 0.25, 0.5, 0.731, 0.975, 1.0)]


def bootstraps():
    cases = []
    for seed, name in enumerate(SAMPLES):
        if name == "constant":
            continue
        values = np.asarray(SAMPLES[name], float)
        indices = np.random.default_rng(seed).integers(0, len(values), (300, len(values)))
        result = st.bootstrap((values,), np.mean, n_resamples=len(indices), vectorized=True,
                              confidence_level=CONFIDENCE, method="percentile",
                              random_state=GivenIndices(indices))
        cases.append({"values": values.tolist(), "indices": indices.ravel().tolist(),
                      "means": result.bootstrap_distribution.tolist(),
                      "low": result.confidence_interval.low, "high": result.confidence_interval.high})
    return cases


def permutations():
    """SciPy flips the signs of a single sample; its statistic here is the mean of group means."""
    rng = np.random.default_rng(9)
    steps = lambda n: (rng.integers(-3, 5, n) * 20).astype(float)
    cases = []
    for groups in ([steps(9)], [steps(12)], [np.array([20.0, 0, 0, 0, 0])], [np.array([40.0, 20, 60, 20])],
                   [np.array([-20.0, 20, 40, -40])], [steps(4), steps(7)], [steps(3), steps(5), steps(4)],
                   [np.round(rng.normal(8, 15, 16), 2)], [np.round(rng.normal(6, 20, 17), 2)],
                   [np.round(rng.normal(6, 20, 9), 2), np.round(rng.normal(6, 20, 9), 2)]):
        flat = np.concatenate(groups)
        weights = np.concatenate([np.full(len(g), 1 / (len(g) * len(groups))) for g in groups])
        weighted = flat * weights
        # Exact: every sign pattern of the numbers that are not zero (signs of zeros change nothing).
        used = weighted[weighted != 0]
        used = used if len(used) > 1 else np.append(used, 0.0)  # SciPy wants two numbers at least
        result = st.permutation_test((used,), lambda x, axis: np.sum(x, axis=axis), vectorized=True,
                                     permutation_type="samples", alternative="two-sided",
                                     n_resamples=np.inf)
        cases.append({"groups": [g.tolist() for g in groups], "p": float(result.pvalue)})
    return cases


def corrections():
    rng = np.random.default_rng(3)
    rows = [[0.01, 0.04, 0.03, 0.005], [0.5], [1.0, 1.0, 0.2], [0.02, 0.02, 0.02],
            np.round(rng.beta(0.5, 3, 13), 6).tolist()]
    return [{"p": p, "holm": multipletests(p, method="holm")[1].tolist()} for p in rows]


def detectable():
    cases = []
    for n, deviation in ((5, 30.0), (20, 18.5), (100, 25.0), (500, 12.0)):
        se = deviation / np.sqrt(n)
        formula = (st.t.ppf(0.975, n - 1) + st.t.ppf(0.8, n - 1)) * se
        # The exact answer of a power analysis (noncentral t), which the formula comes close to.
        exact = TTestPower().solve_power(nobs=n, alpha=0.05, power=0.8, alternative="two-sided")
        cases.append({"n": n, "standard_error": se, "difference": formula,
                      "by_power_analysis": float(exact * deviation)})
    return cases


def plain(value):
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return float(value) if isinstance(value, np.floating) else value


def main():
    golden = {
        "made_by": {"script": "make_statistics.py", "python": platform.python_version(),
                    "numpy": np.__version__, "scipy": scipy.__version__,
                    "statsmodels": statsmodels.__version__},
        "confidence": CONFIDENCE,
        "t_intervals": t_intervals(),
        "means_of_means": means_of_means(),
        "medians": medians(),
        "quantiles": quantiles(),
        "bootstraps": bootstraps(),
        "permutations": permutations(),
        "holm": corrections(),
        "detectable": detectable(),
    }
    path = pathlib.Path(__file__).with_name("statistics.json")
    lines = [f"{json.dumps(k)}: {json.dumps(plain(v))}" for k, v in golden.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{path.name}: {path.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
