# SPDX-License-Identifier: BSD-3-Clause
"""How hard tuning tries: every constant of it, each with what set it.

Measured on the six tables of `benchmarks/accuracy.py`, on splits from 10 on, unless a comment says
otherwise. Losses are leave-one-out losses of the compared points.
"""

from __future__ import annotations

from typing import NamedTuple

from lsgp.solvers.exact_system import LARGEST_EXACT

# -- points ------------------------------------------------------------------------------------

#: Training points on which candidates are compared, as a rule: the loss of the protein table then
#: has a standard error of 1 %, a tenth of what the best and the worst kernel differ by.
N_COMPARED = 3000
#: Training points on which starts are ranked, where there are many more to compare candidates on:
#: to judge one took as long as to tune it (kin8nm: 5.4 s for all of them, then 2.6).
N_RANKED_ON = 1000
#: Of those that were ranked so, how many may be combined with others, polished or as they are: with
#: the best alone, a combination has few kinds to choose from.
N_OUTLINED_KEPT = 8
#: Training points on which candidates are compared by an objective that only the reference
#: backend computes, at most: a millisecond a point.
N_COMPARED_SLOWLY = 500
#: Training points on which other transforms of single inputs are tried,
N_MIXED = 500
#: times inputs, of which there may be many: a solve takes time in proportion.
N_MIXED_INPUTS = 16_000
#: Training points on which exact GPs are tried, before one is made of all rows: a tenth of a
#: second each,
N_TRIED = 1000
#: and those on which the best of so many kernels are compared again: on 1,000 rows of kin8nm a
#: rougher one is better, on all rows rbf is, by 2 to 3 %, and on these too (splits 10 to 13).
N_TRIED_CLOSELY = 3000
N_RIVALS = 3
#: The same where one of all rows is made in any case, and only its hyperparameters are in question.
#: (Together with `N_MIXED` 1,000 to 500 and `LARGE_EVIDENCE_ITERATIONS` 8 to 5, four tables, splits
#: 10 to 14: CRPS -.1 %, no table more than .3 %.)
N_TRIED_OF_FEW = 500
#: Predictions of those points times (d + 1)³, which is what the trend of each one takes: of 128
#: inputs, 190 of them, where all took 18 of 95 seconds.
MOST_TRIED_WORK = 4e8
#: Targets of a neighborhood of m rows, times m, in one optimization: a solve costs m³, and the
#: larger the neighborhood, the fewer targets there is time for,
TARGETS_TIMES_NEIGHBORS = 64_000
#: but with fewer than these their noise is what is optimized.
FEWEST_TARGETS = 128
#: Neighborhoods of so many rows are tuned thoroughly: where they pay, they have much of the weight,
#: still larger ones start from them, and the loss of a function without much noise falls for long.
#: The arm of 36,000 rows (`benchmarks/gpu_curve.py`, another draw), two leaders: with 250 targets
#: and 10 steps .0205 and .0213, with 600 and 20 .0189 and .0191; 384 neighbors then .0177 as they
#: are, where they had been .0189 after steps of their own. Thorough steps there, which take twice
#: as long, made them no better.
THOROUGH_N_NEIGHBORS = 256
THOROUGH_TARGETS, THOROUGH_ITERATIONS = 600, 20

#: An optimization ends where a step lowers the loss by less than this fraction: a small part of the
#: loss's standard error.
NEGLIGIBLE_GAIN = 2e-5
#: Evaluations of a descent, as a multiple of its iterations, beyond which it ends with the next
#: step: 1.1 to 1.4 are the rule; but where losses are noisy, because of single precision, a step
#: may take 20 of them and gain nothing.
EVALUATIONS_PER_ITERATION = 1.5
#: What a step must gain of a log evidence, as a difference.
NEGLIGIBLE_EVIDENCE = 0.01
#: Optimizations are in single precision where losses and gradients of the first targets agree to
#: this fraction (kin8nm with 64 neighbors: 8.6 instead of 19.4 microseconds a target),
SAME_IN_SINGLE, N_CHECKED_IN_SINGLE = 1e-3, 64
#: and the noise is no less than this: with less, most systems are solved twice.
LEAST_NOISE_OF_DESCENT_IN_SINGLE = 1e-4

# -- neighborhoods -----------------------------------------------------------------------------

#: Neighborhood in which candidates are ranked: powerplant and protein gain nothing beyond.
FIRST_N_NEIGHBORS = 64
#: The same in their first round, after which half of them are dropped,
RANKED_N_NEIGHBORS = 32
#: in tables of up to so many rows. Of more, local models are all there is, and what fewer neighbors
#: rank higher is not what is best with all (protein, splits 13 and 14: CRPS 1.5 % higher).
MOST_RANKED_WITH_FEWER = 10_000
#: A query in a gap needs many to see round its rim (satellite: RMSE 1.486 with 64, 1.438 with 256).
N_NEIGHBORS_IN_GAPS = 256
#: The largest neighborhood that any effort tries for more accuracy: 2 ms a prediction.
LAST_N_NEIGHBORS = 512
#: From this many rows on, fast fits try more neighbors. (CRPS of kin8nm 1.11 and 1.06 of balanced
#: fits without and with them; of yacht, boston and concrete nothing changes but the time.)
FEWEST_FOR_LARGE = 2000
#: Floating-point operations of a local solve in a millisecond: a nominal machine, so that what is
#: chosen does not depend on the one it is chosen on.
OPERATIONS_PER_MILLISECOND = 2.5e7
#: How many times as fast a device is (an H200: 300 with 384 neighbors, 1,000 with exact GPs). Host
#: prices kept the exact GPs of 36,000 rows out that it tries: CRPS .036 instead of .027.
SPEED_OF_DEVICE = 300
#: Operations of a covariance, beside those of the distance: an exponential.
OPERATIONS_OF_COVARIANCE = 20

#: What milliseconds of a prediction must lower the loss by beyond those that an effort allows for,
#: as a multiple of what the first must. 36,000 rows of the end of an arm without noise
#: (`benchmarks/gpu_curve.py`): with 1, two models of 384 neighbors, one of 256 and one of 128, 2.3
#: ms; with 4 one of each of these sizes and one of 64, 1.6 ms, and CRPS higher by about 1 % on rows
#: left out and 2 % on others; with 10 those of 384, 128 and 64, 1.1 ms, and 3.6 % on others.
TIMES_BEYOND = 4.0

# -- coarse neighborhoods ------------------------------------------------------------------------

#: There must be so many times as many rows as neighbors: of fewer, few are far.
FEWEST_FOR_COARSE = 16
#: How many times as many rows units stand for, at least about: with fewer, more units do as well.
COARSE_FACTORS = (4, 16, 64, 256)
#: Which of them are tried first, and the others only if one is better than rows alone.
FIRST_COARSE_FACTORS = (4, 16)
#: Rows of the nodes that are predicted in tuning instead of rows, where these are mostly noise.
#: With n = 100,000 and noise of twice the signal, 2,000 rows led to errors from .051 to .130.
TARGET_NODE = 16
#: Fraction by which units must lower the loss, beside a standard error of the difference: prices
#: are the same, so that it need not be much.
WORTH_COARSE = 0.001

# -- candidates --------------------------------------------------------------------------------

#: From this many inputs on, fewer starts are tuned: with 128, the ranking alone took 40 s.
MANY_INPUTS = 48
#: Of so many rows, those of as many inputs that matter are found first (`NARROWING`): of fewer, the
#: loss is too noisy to tell, and time is short anyway.
FEWEST_FOR_NARROWING = 1000
#: Inputs are left out while the loss is higher by no more than this fraction than the lowest so
#: far. Of 2,309 rows of 128 inputs, 15 of which matter, the loss falls from .220 to .201 down to 16
#: of them, and is .299 with 8; where 60 are proxies of six, or 50 matter alike, all are kept,
SAME_NARROWED = 0.005
#: and no fewer than these.
FEWEST_KEPT = 16
#: Inputs of which other transforms are tried: those of the shortest lengthscales.
MOST_MIXED = 16
#: Candidates whose radius is varied.
N_WIDENED = 2
#: Where one radius serves all queries: by what it is varied, how many rows say which one to begin
#: with, and how many neighbors none of them may have.
RADIUS_STEP, N_ASKED, MOST_WITHIN = 2.0**0.5, 256, 512
#: Fraction by which more neighbors must lower the loss to be worth their cost,
WORTH_MORE_NEIGHBORS = 0.005
#: and the same of a log density, which has no zero, as a difference.
WORTH_MORE_NEIGHBORS_IN_DENSITY = 0.001
#: A loss higher by this fraction, or a log density lower by this much, may yet become the best.
PROMISING = 0.1
#: An exact GP whose loss is lower by this fraction than that of the best local model has nearly all
#: of the weight, and variants of local models are not tried (kin8nm: 2 of 22 s, CRPS the same).
FAR_BETTER = 0.05
#: Fraction by which another transform of a single input must lower the loss: less is noise.
WORTH_MIXING = 0.002
#: A loss higher by this fraction will not be mended by another lengthscale.
HOPELESS_MIXED = 0.02
#: The lengthscale that suits another transform may be a little shorter or longer.
MIXED_LENGTHSCALE_FACTORS = (1.0, 0.7, 1.4)

# -- exact GPs ---------------------------------------------------------------------------------

#: Up to this many rows, exact GPs have a share in what tuning combines in any case,
FEW_ROWS = 500
#: which is a half at this many rows: by the leave-one-out scores alone it would be too small
#: (n = 30: CRPS .911 of an exact GP's with it; n = 400: .980, whatever it is).
N_EVEN = 100
#: Up to this many rows, an exact GP is tuned by the evidence too: its n³ is then a second or two.
MOST_FOR_EVIDENCE = 2000
#: Up to this many rows, an exact GP is made even where more neighbors do not pay.
ALWAYS_EXACT = 1500
#: Rows on which the evidence is maximized first, for a start on all of them: n³.
N_FIRST_EVIDENCE = 400
#: The same where each kernel and transform is tried.
N_FIRST_LIKELY = 100
#: On a device, a larger exact GP is tuned by the evidence of so many of its rows, at random.
N_FOR_EVIDENCE = 10_000
#: Rows of the first steps by the evidence there, where all of more are asked for.
N_FOR_FIRST_EVIDENCE = 3000
#: Multiply-adds a second of a device that factors, when the time of it is guessed in advance.
FAST_RATE = 1e13
#: Steps for every exact GP, and more of them for the likeliest, which are averaged.
FIRST_EVIDENCE_ITERATIONS = 12
LAST_EVIDENCE_ITERATIONS = 30
#: Fewer where their share is small (yacht, splits 10 to 19: 3.9 to 3.5 CPU s, CRPS +.3 %).
SMALL_SHARE_ITERATIONS = 15
#: The same on all rows of an exact GP of more than few, after those on part of them.
LARGE_EVIDENCE_ITERATIONS = 5
#: How many times fewer points the models of a previous fit are compared on: those of an exact GP of
#: thousands of rows are a second of the four that such a fit takes (kin8nm).
LESS_COMPARED_WARM = 2
#: Models of a previous fit with less weight are not polished. All are candidates as they are too:
#: one objective makes polished ones more alike (powerplant, 2 % fewer rows, split 10: CRPS 1.449 of
#: polished ones alone, 1.421 with the others, 1.431 of the first fit).
POLISHED_WARM = 0.2
#: Steps from the exact GPs of a previous fit on.
WARM_EVIDENCE_ITERATIONS = 5
#: At most this many,
N_AVERAGED = 4
#: half of those where all have no more than this share: from 200 rows on.
SMALL_SHARE = 0.2
#: Less likely ones, relative to the likeliest, are not worth their time.
SMALLEST_ODDS = 0.02
#: Up to this many rows, double precision costs next to nothing.
MOST_IN_DOUBLE = 2000
#: Noise variance, relative to the signal's and to the root of the number of rows, from which on an
#: exact GP is factored in single precision. With noise s², solutions are about 1/s, correlations
#: rounded by 3e-8, and means, sums of n products, off by 2e-8 root(n) / s² of their standard
#: deviation. Measured (rbf, 8 inputs; root of the mean square, and most): 1,500 rows with s² = .01
#: 6e-5 and 2e-4, 3,000 1e-4 and 3e-4, with s² = .001 1e-3 and 3e-3; variances are off by less. So
#: this is 5e-4 of the standard deviation, of which the CRPS notices 1e-7.
LEAST_NOISE_IN_SINGLE = 4e-5
#: How much faster that is.
SPEED_OF_SINGLE = 2.5
#: Variance of an exact GP's constant, relative to that of the signal. Its slope is centered at the
#: mean of the rows and that of a local model at the query: with a flat constant it is the same.
FLAT = 50.0

# -- very few rows: hyperparameters are integrated out ------------------------------------------
# Set on 20 draws each of sin, Friedman and linear functions with noise of 0, .1 and .5 of the
# signal; n = 5 to 40.

#: The share of the integrated GPs is about a half at this many rows,
N_INTEGRATED_HALF = 80
#: and nothing from these on: intervals of 90 % cover .91 there without them.
N_INTEGRATED_LAST = 160
#: A share of all others below this is nothing: they are not worth their time.
NEGLIGIBLE_SHARE = 0.01
#: Exact GPs that stand for the posterior (CRPS at n = 12: 8 of them .2746, 16 .2701, 64 .2715).
N_MEMBERS = 16
#: Slices after each tempering step, and after the last: more of them changed nothing.
N_MOVES, N_LAST_MOVES = 2, 4
#: Degrees of freedom of the prior of the signal variance around the variance of the targets.
#: These are centered at their own mean, which costs one: this is 2 less 1. (.3 to 2 differ by 3 %
#: in CRPS.)
INTEGRATED_SCALE_DOF = 1.0
#: What few rows can tell apart, at best: other kernels and transforms changed nothing, while
#: Yeo-Johnson halves the CRPS of functions of logarithms (n = 20: .180 to .098).
INTEGRATED_KERNELS = frozenset({"matern32", "matern52", "rbf"})
INTEGRATED_TRANSFORMS = frozenset({"standardize", "yeo-johnson"})
#: Rows at which another transform than standardizing is half as likely as that.
N_TRANSFORM = 20
#: Pairs of rows, times inputs, beyond which integrating would take longer than all the rest:
#: 100 inputs of 160 rows are five seconds.
MOST_INTEGRATED_PAIRS = 2_500_000

# -- scales ------------------------------------------------------------------------------------

#: Largest log signal variance that calibration sets, beyond that of the descent: means tuned by
#: squares fix the ratios of variances alone, and where the noise ended at e⁻¹⁶ of the signal, the
#: signal is e¹⁶ times the noise (with e⁶ at most, intervals of 90 % covered .18).
LARGEST_CALIBRATED_SIGNAL = 40.0

# -- devices -----------------------------------------------------------------------------------

#: Candidates that ask a device for losses together, at most: each has a thread, and arrays there.
MOST_GATHERED = 32
#: Of these, so many work on this machine at a time: most of it is Python's work, which threads make
#: slower. The ranking of the protein table, 532 losses of 24 candidates, beside an H200: 1.68 s on
#: 16 threads and 1.02 on 4 without gathering; with it .84 s on two, and .94 on one, which waits 58
#: times.
CORES_OF_GATHERED = 2

# -- values ------------------------------------------------------------------------------------

#: Loss of a model with a local system that cannot be solved: bad, but finite for the optimizer.
BAD_LOSS = 1e6
#: The same of an evidence, which is a sum over all rows rather than a mean.
BAD_EVIDENCE = 1e10

# -- breadth -----------------------------------------------------------------------------------


class Breadth(NamedTuple):
    """How many kinds of candidates are tried."""

    kernels: tuple[str, ...] | None = None  # None: all that the settings leave open
    most_polished: int = 1000
    varies_scale: bool = True
    mixes_transforms: bool = True


ALL_KINDS = Breadth()
#: Of classes. With all kernels, a transform for each input, and candidates compared on rows that
#: they were tuned on, spambase took four times as long, and .1584 instead of .1443: which of these
#: it was has not been measured one by one. The width of the link was made for the local scale.
OF_CLASSES = Breadth(("matern12", "matern32"), 2, varies_scale=False, mixes_transforms=False)

# -- efforts -----------------------------------------------------------------------------------


class Effort(NamedTuple):
    """How hard one optimization tries."""

    n_targets: int
    n_rounds: int
    n_iterations: int

    @property
    def work(self) -> int:
        """Local solves, roughly: the unit of the progress that is reported."""
        return self.n_targets * self.n_rounds * self.n_iterations


#: For one model with all of many inputs, then with the half of the shortest lengthscales, and so
#: on: three seconds of 2,309 x 128, where all stages then take 17 and not 75. CRPS of two such
#: tables .469 to .431 and .277 to .265, split 10.
NARROWING = Effort(500, 1, 20)


class Efforts(NamedTuple):
    """How hard all of them try."""

    ranking: Effort
    relaying: Effort  # of other kernels, from the optimum of the first on
    n_relayed: int  # input transforms in which these are tried
    polishing: Effort
    n_polished: int  # candidates that are polished after the ranking


def first_effort(ranking: Effort) -> Effort:
    """How hard the model that is there at first is tuned: a tenth of a second, or two."""
    return Effort(min(ranking.n_targets, FEWEST_TARGETS), 1, 10)


def effort_of_larger(n_neighbors: int, n_tuning_points: int, is_in_gaps: bool = False) -> Effort:
    """How hard a larger neighborhood is tuned, from the optimum of a smaller one on.

    In gaps the first is as large as those that are tuned thoroughly elsewhere.
    """
    if n_neighbors == THOROUGH_N_NEIGHBORS and not is_in_gaps:
        return Effort(min(n_tuning_points, THOROUGH_TARGETS), 1, THOROUGH_ITERATIONS)
    n_targets = max(FEWEST_TARGETS, TARGETS_TIMES_NEIGHBORS // n_neighbors)
    return Effort(min(n_tuning_points, n_targets), 1, 10)


def n_particles(n: int) -> int:
    """Fewer where each is dear, and the share small; a power of 2, for Sobol points.

    At n = 40, CRPS is .1730 with 64, .1697 with 128, .1695 with 256.
    """
    return 128 if n <= 64 else 64 if n <= 112 else 32


def n_regions(n: int) -> int:
    """Regions to hold out: of maps of many rows more, whose gaps differ in size.

    What 12 choose follows their chance: of 18 development tasks, the CRPS relative to that of an
    exact GP had a mean of .927, and was above that without queries on 6; with 24 .911, and on 1.
    """
    return 24 if n <= 10_000 else 32


def transform_weight(n: int) -> float:
    """Prior weight of another input transform than standardizing, which has 1."""
    return n * n / (n * n + N_TRANSFORM**2)


def integrated_share(
    n: int, n_half: float = N_INTEGRATED_HALF, n_last: float = N_INTEGRATED_LAST
) -> float:
    """The weight of integrated GPs in a combination; what is chosen has the rest."""

    def fading(k: float) -> float:
        return 1.0 / (1.0 + (k / n_half) ** 4)

    last = fading(n_last)
    share = max(0.0, (fading(n) - last) / (1.0 - last))
    return 1.0 if share > 1.0 - NEGLIGIBLE_SHARE else share


def exact_share(n: int) -> float:
    """The weight that exact GPs have in a combination, whatever their leave-one-out scores."""
    return 1.0 / (1.0 + (n / N_EVEN) ** 2)


#: Degrees between the angles of an anisotropy that are tried first: the loss has one period of 90
#: degrees, of which six points show where it is lowest.
ANGLE_STEP = 15.0
#: How often they are halved around the best. To 3.75 degrees: with a ratio of 1/3, an angle that is
#: off by 2 degrees lengthens no distance by more than a percent.
N_ANGLE_HALVINGS = 2


# -- whether a device is worth it ----------------------------------------------------------------

#: Seconds that local models take one core in a default fit of this many rows, and of more: 2.6 s on
#: 16 cores of an H200's host (n = 32,000), 81 s on one of another machine, with 512 neighbors.
SECONDS_OF_LOCAL, MANY_ROWS = 40.0, 4000
#: Rows cubed that the host factors in a second, which several threads do not share (2,000 rows: .15
#: s), and how often tuning by the evidence has it do that.
CUBED_PER_SECOND, N_EVIDENCES = 5.4e10, 80


def seconds_on_host(n: int, n_tuning_points: int, n_threads: int) -> float:
    """That a default fit takes there, roughly, but for its trees, which the host fits in any case.

    16 cores take 3.8 s of 500 rows, 16.8 of 2,000, 9.6 of 8,000 and 2.2 of 32,000; an H200 beside
    four threads 2.3, 3.7, 4.7 and 5.6 s, where it tries an exact GP of all of them, once it is in
    use and all is compiled.
    """
    share = min(1.0, n / MANY_ROWS) * min(1.0, n_tuning_points / 2000)
    n_factors = 0 if n > LARGEST_EXACT else N_EVIDENCES if n <= MOST_FOR_EVIDENCE else 1
    return SECONDS_OF_LOCAL * share / n_threads + n_factors * n**3 / CUBED_PER_SECOND
