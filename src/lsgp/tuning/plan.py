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
N_MIXED = 1000
#: times inputs, of which there may be many: a solve takes time in proportion.
N_MIXED_INPUTS = 16_000
#: Training points on which exact GPs are tried, before one is made of all rows: a tenth of a
#: second each. Which candidate suits best was the same on all rows (kin8nm, concrete).
N_TRIED = 1000
#: Predictions of those points times (d + 1)³, which is what the trend of each one takes: of 128
#: inputs, 190 of them, where all took 18 of 95 seconds.
MOST_TRIED_WORK = 4e8
#: Targets of a neighborhood of m rows, times m, in one optimization: a solve costs m³, and the
#: larger the neighborhood, the fewer targets there is time for,
TARGETS_TIMES_NEIGHBORS = 64_000
#: but with fewer than these their noise is what is optimized.
FEWEST_TARGETS = 128

#: An optimization ends where a step lowers the loss by less than this fraction: a small part of the
#: loss's standard error.
NEGLIGIBLE_GAIN = 2e-5
#: The same of a log evidence, as a difference.
NEGLIGIBLE_EVIDENCE = 0.01
#: Optimizations are in single precision where losses and gradients of the first targets agree to
#: this fraction (kin8nm with 64 neighbors: 8.6 instead of 19.4 microseconds a target),
SAME_IN_SINGLE, N_CHECKED_IN_SINGLE = 1e-3, 64
#: and the noise is no less than this: with less, most systems are solved twice.
LEAST_NOISE_IN_SINGLE = 1e-4

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
LARGE_EVIDENCE_ITERATIONS = 8
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

# -- functions without noise ---------------------------------------------------------------------
# Set on draws from 10 on of the functions of `benchmarks/deterministic.py`.

#: Noise variance of exact GPs of functions without noise, relative to that of the targets: relative
#: to the signal's, which may be hundreds of times as large, Friedman 1 with 600 rows has an RMSE of
#: .0012, and with this .0004.
TINY_NOISE = 1e-10
#: It is no less than this, relative to the signal's, times the rows: with less, rounding is most of
#: the error, and leave-one-out errors are not those of other points (Friedman 1, 2,500 rows: with
#: 2.4e-13 errors of 3.5e-5 and 4.5e-5, and intervals of 90 % hold 61 %; with 1e-12 93 %).
ROUNDING_NOISE = 1e-15
#: Times which it is, the first with which all rows can be factored without jitter.
NOISE_STEPS = (1.0, 10.0, 100.0, 1000.0)
#: Largest log signal variance of them: smooth functions are part of ones that vary far more.
LARGEST_NOISELESS_SIGNAL = 16.0
#: Rows that their evidence is of: some seconds; and of the first of them, from two starts.
N_NOISELESS_ROWS, N_FIRST_NOISELESS = 600, 150
#: Their kernels, and steps by the evidence at most, which end where it gains next to nothing: with
#: 600 rows of Friedman 1, Matérn 5/2 alone has an error of .0011 std(y), with RBF after 30 steps it
#: is .0010, and after as many as it takes .0002, in half a second more.
NOISELESS_ITERATIONS = 150
NOISELESS_KERNELS = ("rbf", "matern52")
#: How much less likely than the best what cannot be factored is taken for, and how often a descent
#: that met such goes on, while it gains so much: of nine draws of the borehole function of 600
#: rows, one ended at an error of .037, and now at .009.
FAILED_EVIDENCE, MOST_DESCENTS, WORTH_DESCENT = 100.0, 4, 1.0
#: Inputs are bent (`tuning/bending.py`): quantiles at which slopes are compared, standard deviation
#: of the prior of the logarithm of their ratio, and its largest size. With 600 rows, RMSE without
#: and with: borehole .032 and .008, Friedman 3 .022 and .012, Friedman 2 .28 and .18; with 100 rows
#: .233 and .161, .076 and .052. Hartmann's and Friedman 1, which need none, have the same with this
#: spread, and 4 % more with twice of it.
BEND_ENDS, BEND_SPREAD, LARGEST_BEND = (0.05, 0.95), 0.5, 5.0
#: Powers of a bend times logarithms of inputs, at most: their exponentials must not overflow.
MOST_POWER = 50.0
#: Up to this many rows, scales and weights are by folds whose rows hyperparameters have not seen:
#: leave-one-out errors of 100 rows of the borehole function are half of those of other rows.
MOST_REFITTED, N_REFITTED = 200, 5
#: By which factor the loss of rows that they have not seen may be above the leave-one-out loss of
#: the best with noise. Half of yacht, no function after all: 1.6 and 1.8, and a CRPS higher by a
#: tenth with them; Friedman 1 with 100 rows: 1.2, the borehole function .7.
WORST_UNSEEN = 1.4
#: Up to `MOST_FOR_EVIDENCE` rows, they are tried where there is noise of this variance, relative to
#: the signal's: priors keep 1e-4 of it of Friedman 3 with 100 rows, and 1e-3 of Hartmann's function
#: with 600, while boston has .02.
LITTLE_NOISE = 2e-3
#: How much of the evidence weighs those of more rows: that of ten rows, of more than a hundred. A
#: function is no draw of either: the one is too smooth, and its intervals too narrow, the other too
#: rough, and all of the evidence would choose one.
NOISELESS_EVIDENCE_ROWS, FEWEST_EVIDENCE_ROWS = 10, 100
#: So many observations show half of what calibration does to a combination without noise: their
#: leave-one-out errors are those of other rows (600 rows, the errors' size in standard deviations,
#: borehole: 1.49 and 1.48).
N_HALF_PROVEN_NOISELESS = 200

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

# -- beyond the data ---------------------------------------------------------------------------
# Measured on the regions of `benchmarks/beyond.py --development`.

#: Queries are beyond the data if the median of their distances from the rows is so many times that
#: of rows from each other: of random tests it is 1.
BEYOND_RATIO = 1.1
#: Of fewer rows there are no regions to speak of.
FEWEST_FOR_REGIONS = 60
#: Regions that are drawn for each that is held out, which is the one most like the queries'.
N_PROPOSED_REGIONS = 4
#: The largest share of the rows that a region holds out.
LARGEST_REGION = 0.25
#: Rows of all regions that are predicted.
N_REGION_TARGETS = 1200
#: From this many regions on, one model is taken: picks among many single models follow the chance
#: of gaps of many sizes (on the map of a satellite, CRPS was .76 or .86 by the random state).
MANY_REGIONS = 30
#: By how many standard errors over regions what is chosen must be better than the fit without
#: queries to stand in its place. Regions overlap, so these are too small: of 18 other regions of
#: the same tables, of 1,000 rows, what was better by 2 to 2.6 of them had 1.14, .95 and 1.09 times
#: its CRPS on the queries, and what was better by 3.5 and more .5 to 1.00, but for one with 1.07.
CLEARLY = 2.75
#: Models of the fit without queries that are tuned on for them, and candidates that are polished.
N_TAKEN_ON, N_POLISHED_BEYOND = 2, 2
#: Rows of which the evidence of an exact GP is maximized, if it is to be one of all rows.
N_EVIDENCE_BEYOND = 1000

# -- gaps of maps ------------------------------------------------------------------------------
# Measured on gaps of `benchmarks/gaps.py`: some are tuned on, others judge.

#: Of fewer rows, balls and ends are held out: mirrored, few queries fall on few rows.
FEWEST_FOR_MIRRORS = 10_000
#: Of more inputs than a map has, mirrored rows are where none are.
MOST_MIRRORED_INPUTS = 3
#: How many times the distance of far queries gaps are moved aside, onto the rows beside them.
FAR_ASIDE = 3.0
#: How many mirrors are tried, and how many held out, each as a whole: half of them moved aside.
N_PROPOSED_MIRRORS, N_MIRRORS = 11, 6
#: Rows of all mirrors that are predicted to judge by, and as many to tune on.
N_MIRRORED_TARGETS = 2400
#: The largest share of the rows that one may hold out,
LARGEST_MIRRORED = 0.5
#: and how much the logarithms of distances may differ from those of the queries: by half.
LARGEST_MISMATCH = 0.4
#: Rows stand for queries that are farther or nearer by no more than this factor.
ALIKE_DISTANCE = 1.07
#: Parts of all mirrors by whose differences chance is judged.
N_BLOCKS = 48
#: Neighbors with which kernels and directions are tried in gaps, and those of what is combined.
N_TRIED_IN_GAPS, N_COMBINED_IN_GAPS = 64, 128
#: Kernels of what is combined,
N_KERNELS_IN_GAPS = 2
#: beside one with lengthscales as long as the gaps, which pays with this kernel alone. Masks 2, 3
#: and 7, tuned on 0 and 1: RMSE 1.514 of the nearest rows, 1.498 of units, 1.572 of long
#: lengthscales, CRPS .780, .777 and .820, interval scores 7.84, 7.76 and 7.95; together 1.487,
#: .770 and 7.51.
ROUGH_KERNEL = "matern12"
#: How many times as many rows as neighbors units stand for [E9]: far from all rows, those all
#: around a gap tell its trend.
FACTOR_IN_GAPS = 16
#: Rows of gaps that kernels and directions are tried on.
N_TARGETS_TRIED_IN_GAPS = 600
#: Inputs whose spreads differ by more have units that are not alike, and no directions.
MOST_UNLIKE_UNITS = 10.0
#: What lengthscales are multiplied by along a direction that is tried, and divided by across,
STRETCH_ALONG = 2.0**0.5
#: and what must be gained by it, in nats.
WORTH_TURNING = 0.005
#: Other kernels go on from the best one with lengthscales of this part of its, and no less noise:
#: smoother ones that begin with its own end in poor optima.
RELAYED_LENGTHSCALE, RELAYED_NOISE = 0.5, 0.003

# -- scales ------------------------------------------------------------------------------------

#: Largest log signal variance that calibration sets, beyond that of the descent: means tuned by
#: squares fix the ratios of variances alone, and where the noise ended at e⁻¹⁶ of the signal, the
#: signal is e¹⁶ times the noise (with e⁶ at most, intervals of 90 % covered .18).
LARGEST_CALIBRATED_SIGNAL = 40.0

# -- classes -----------------------------------------------------------------------------------
# Measured on the tables of `benchmarks/classification.py`, log loss on splits from 10 on.

#: Columns that one-hot targets of many classes are projected to where models are optimized: the
#: squared error of random combinations of classes with signs is, on average, that of all classes,
N_PROJECTED = 8
#: from this many columns on: by their operations, 26 columns of 64 rows cost twice the factor.
MOST_COLUMNS = 12
#: Up to this many rows, logistic regression is a member too (pima .486 to .481, mean of 3 splits;
#: spambase, of 4,000 rows, .1438 to .1446),
MOST_FOR_LINEAR = 2000
#: with each of these ridges,
RIDGES = (1.0, 10.0, 100.0)
#: judged on so many folds that it has not seen.
N_FOLDS = 10
#: Share of the class prior in its probabilities: 1 in 1000 is the surest it can be.
LINEAR_PRIOR_SHARE = 1e-3

#: Where rows are few, up to so many classes, GP classification by Laplace's approximation has a
#: share, in these kernels,
MOST_CLASSES_FOR_LAPLACE = 10
LAPLACE_KERNELS = ("matern32", "rbf")
#: with the lengthscales of a regression times these, and log odds of these variances,
LAPLACE_STRETCHES, LAPLACE_AMPLITUDES = (1.0, 1.6, 2.5), (0.5, 1.5, 5.0, 15.0)
#: beside that of their constant.
LAPLACE_CONSTANT = 3.0
#: Of the pool. Means of 4 splits of pima, and of 2 each of 150 and 600 rows of phoneme, magic and
#: spambase: without .464 and .383, half .459 and .350, .7 .457 and .349, alone .456 and .361; of
#: satimage, of six classes: without .491, half .455, .7 .478.
LAPLACE_SHARE = 0.55

#: Normal priors of a link's (log a, log e0, log e1), as strong as one row: a softmax of logarithms,
#: with a width of a few percent.
LINK_CENTER = (0.0, -3.0, -2.3)
LINK_SPREAD = (1.5, 2.0, 2.0)
#: Where the logarithm of the class prior's share starts.
LINK_START_PRIOR_SHARE = -6.9
#: Each bias is held to 0 by half a row.
BIAS_PRIOR = 0.5
#: Bounds of log a, log e0, log e1 and log λ, and of the biases. λ: at most a third, at least 6e-6.
LINK_BOUNDS = ((-3.0, 4.0), (-6.0, 4.0), (-8.0, 5.0), (-12.0, -1.0))
BIAS_BOUND = 10.0
#: Iterations of L-BFGS-B in which a link is fitted.
LINK_ITERATIONS = 200

# -- boosted trees -----------------------------------------------------------------------------
# Set on splits 10 to 29 of yacht, boston and concrete. The best share that is the same for all
# predictions lowers squared errors by 11, 4 and 9 %, and the best for CRPS lowers that by 1.9, 1.5
# and 1.5 %; shares in proportion to scales by 19, 5 and 11 %, and by 4.3, 1.9 and 3.1 %.

#: Shares of trees in a location of the usual scale that are tried.
BOOSTED_SHARES = tuple(0.05 * k for k in range(11))
#: What a share is beforehand, and how many rows' worth of loss it is to be off by 1.
BOOSTED_PRIOR_SHARE, BOOSTED_PRIOR_ROWS = 0.25, 900
#: Of more rows than these, fewer: models are tuned on a small part of them, and errors are honest.
#: With a million rows of a smooth function with noise, trees that changed nothing were fitted for
#: a minute and more.
MOST_FOR_BOOSTED_PRIOR = 5000
#: Nor more than so many times as many as there are: of 120 rows of a smooth function, noise alone
#: spoke for trees, and errors were a fifth larger with them.
MOST_PRIOR_OF_ROWS = 2.0
#: By which fraction leave-one-out errors of models are too small, as they were tuned on these rows:
#: of the same rows in tests, CRPS is higher by .25 on yacht and by .14 on boston, while that of
#: trees is lower, of which tests have the mean of all folds. Of more rows than these, less.
OPTIMISM, MOST_OPTIMISTIC = 0.2, 1000
#: What trees must lower the loss by, as a fraction, to be worth their time.
WORTH_BOOSTING = 0.005
#: Up to this many rows, all folds are fitted, in tenths of a second: a single one of yacht, of 55
#: rows, said in 4 of 20 splits that trees do not pay, which do.
ALWAYS_BOOSTED = 1500
#: Rows that trees are fitted to at most: a fold of these takes some seconds.
MOST_BOOSTED_ROWS = 300_000
#: Fewer rows have leaves of next to none of them,
FEWEST_BOOSTED_ROWS = 100
#: and of one or two inputs, predictions are maps or curves, which people want without steps.
FEWEST_BOOSTED_INPUTS = 3
#: How many times as many trees as a previous fit had are grown from it on.
WARM_TREES = 1.1
#: Held-out rows of a fold by which the number of trees is chosen.
N_WATCHED = 4096


class Boosting(NamedTuple):
    """How trees are fitted."""

    n_folds: int
    n_trees: int  # at most
    n_leaves: tuple[int, ...]  # of which those are taken that suit the first fold
    n_rows_of_leaf: int
    #: Trees that may be grown since the fold which they do not see was predicted best.
    patience: int = 100
    learning_rate: float = 0.1


def boosted_prior_rows(n: int) -> float:
    """Of n training rows."""
    return min(BOOSTED_PRIOR_ROWS * min(1.0, MOST_FOR_BOOSTED_PRIOR / n), MOST_PRIOR_OF_ROWS * n)


def optimism(n: int) -> float:
    """By which fraction leave-one-out errors of models of n rows are too small."""
    return OPTIMISM * min(1.0, MOST_OPTIMISTIC / n)


def plan_boosting(n: int) -> Boosting:
    """By the number of rows: more of them bear larger trees, and take fewer folds.

    Squared errors of trees alone, in the variance of targets, with 100 to 200 trees of 8 leaves,
    and with these: yacht .00166 and .00085, concrete .066 and .052 (splits 10 to 24, 10 to 17).
    """
    if n < 500:
        return Boosting(5, 1500, (4, 8), 3)
    if n < 1000:
        return Boosting(5, 1500, (8, 16), 3)
    if n < 5000:
        return Boosting(5, 1000, (8, 31), 5)
    if n < 20_000:
        return Boosting(4, 600, (31,), 5)
    return Boosting(3, 400, (127,), 20)


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


def effort_of_larger(n_neighbors: int, n_tuning_points: int) -> Effort:
    """How hard a larger neighborhood is tuned, from the optimum of a smaller one on."""
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


def integrated_share(n: int) -> float:
    """The weight of integrated GPs in a combination; what is chosen has the rest."""

    def fading(k: float) -> float:
        return 1.0 / (1.0 + (k / N_INTEGRATED_HALF) ** 4)

    last = fading(N_INTEGRATED_LAST)
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
