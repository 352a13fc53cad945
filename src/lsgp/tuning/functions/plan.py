# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of tuning for functions without noise, each with its reason."""

from __future__ import annotations

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
#: Rows that their evidence is of: some seconds; and of the first of them, which choose what goes on
#: with all: odds that it has there at least, which is by 138 less likely. Of Friedman 3 with 600
#: rows, RBF is by 65 on the first ones, and with all of them more likely by 1,100.
N_NOISELESS_ROWS, N_FIRST_NOISELESS, SMALLEST_FIRST_ODDS = 600, 150, 1e-4
#: Their kernels, and steps by the evidence at most, which end where it gains next to nothing: with
#: 600 rows of Friedman 1, Matérn 5/2 alone has an error of .0011 std(y), with RBF after 30 steps it
#: is .0010, and after as many as it takes .0002, in half a second more.
NOISELESS_ITERATIONS = 150
NOISELESS_KERNELS = ("rbf", "matern52")
#: How much less likely than the best what cannot be factored is taken for, and how often a descent
#: that met such goes on, while it gains so much: of nine draws of the borehole function of 600
#: rows, one ended at an error of .037, and now at .009.
FAILED_EVIDENCE, MOST_DESCENTS, WORTH_DESCENT = 100.0, 4, 1.0
#: Inputs are bent (`bending.py`): quantiles at which slopes are compared, standard deviation
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
#: the signal's: priors keep 1e-4 of it of Friedman 3 with 100 rows, and 1e-3 to 4e-3 of Hartmann's
#: function with 600 (where they were not tried, an error of .101, and of .090 with them), while
#: boston has .02.
LITTLE_NOISE = 1e-2
#: With noise of up to this variance, also where rows are less likely without it by no more than
#: this times their number, in the metric that was tuned with noise: by .05 and .005 of Hartmann's
#: function with 600 rows on two draws whose noise is .019 and .012, and by 4.4 and more of boston.
SOME_NOISE, LARGEST_DROP = 5e-2, 0.25
#: How much of the evidence weighs those of more rows: that of ten rows, of more than a hundred. A
#: function is no draw of either: the one is too smooth, and its intervals too narrow, the other too
#: rough, and all of the evidence would choose one.
NOISELESS_EVIDENCE_ROWS, FEWEST_EVIDENCE_ROWS = 10, 100
#: So many observations show half of what calibration does to a combination without noise: their
#: leave-one-out errors are those of other rows (600 rows, the errors' size in standard deviations,
#: borehole: 1.49 and 1.48).
N_HALF_PROVEN_NOISELESS = 200
#: The same by rows that hyperparameters have not seen, without a contrast, which so few do not
#: show. Models whose scales are right each are too wide together, as their errors differ, and the
#: errors of folds have outliers: intervals of 90 % of 12 functions of 100 rows, three draws each,
#: held .93 of other points, and with half of what folds say .898 (.92 with a fifth, .835 with all).
N_HALF_PROVEN_UNSEEN = 100

# Of rows on a lattice (`lattice.py`). RMSE is relative to the standard deviation of the
# function, at points between levels.

#: Rows of a level, on average, from which on an input is one of levels.
FEWEST_OF_LEVEL = 3
#: Share of all combinations of levels that a complete lattice has at least: there, the only queries
#: other than rows are between levels. Yacht, of 308 of a million, is none.
LEAST_COMPLETE = 0.5
#: Levels from which on an input may be bent: fewer tell too little of a bend (3 levels of each of 5
#: inputs: powers of -6, an RMSE of .49 instead of .06; Branin's function of 8 by 8 rows: .056
#: instead of .012 with bends of 6 levels on). From 10 on, held-out levels choose well (a rational
#: function of 12 by 12 rows: .0003 instead of .004; Currin's .006 instead of .007).
FEWEST_BENT_LEVELS = 10
#: Lengthscales are no shorter than the spacing of levels, and than this many times it, over one
#: less than their number: a shorter one is one guess of many (two inputs of three levels beside one
#: that is continuous: RMSE .24 and .35 with the spacing alone, .04 with three times it).
SHORTEST_OF_FEW_LEVELS = 6.0
#: Levels that an input has at least where one of them is held out: without the second of three,
#: the others say next to nothing of it, and what predicts it best is no good between them.
FEWEST_HELD_OUT_OF = 4
#: Levels that are held out of up to `N_NOISELESS_ROWS` rows, and at least, as each takes the cube
#: of the rows.
MOST_LEVELS_HELD_OUT, FEWEST_LEVELS_HELD_OUT = 24, 6
#: So many of them show half of what they say of the scale.
N_HALF_PROVEN_LEVELS = 4
