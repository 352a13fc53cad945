# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of tuning for queries beyond the rows and in gaps of maps, each with its reason."""

from __future__ import annotations

# -- beyond the data ---------------------------------------------------------------------------
# Measured on the regions of `benchmarks/beyond.py --development`.

#: Queries are beyond the data if the median of their distances from the rows is so many times that
#: of rows from each other: of random tests it is 1.
BEYOND_RATIO = 1.1
#: Of fewer rows there are no regions to speak of.
FEWEST_FOR_REGIONS = 60
#: Regions that are drawn for each that is held out, which is the one most like the queries'.
N_PROPOSED_REGIONS = 4
#: The largest share of the rows that a region holds out, and with the rest of their groups.
LARGEST_REGION, LARGEST_WITH_GROUPS = 0.25, 0.5
#: Rows of all regions that are predicted.
N_REGION_TARGETS = 1200
#: From this many regions on, one model is taken: picks among many single models follow the chance
#: of gaps of many sizes (on the map of a satellite, CRPS was .76 or .86 by the random state).
MANY_REGIONS = 30
#: The share of exact GPs of sums and products, beside local models that are tuned for the queries.
#: Of 18 development tasks, the CRPS relative to that of an exact GP, and on how many it is no
#: higher: .899 and 15 with .5, .893 and 16 with .6, .889 and 15 with .7, .888 and 14 with .8, .891
#: and 12 with all; .94 and 15 without them. What regions pick of both: .905 to .923 and 11 to 13.
COMPOSITE_SHARE_BEYOND = 0.7
#: Models of each kind whose loss is higher by no more than this fraction than that of the best are
#: combined, all alike: picks follow the chance of few regions (.891 with .1, .3 or 1).
USABLE_BEYOND = 0.2
#: The least factor that few regions give the scales of it. Of the same tasks, with any factor the
#: CRPS was .9037, and intervals of 95 % covered .88 to .99 on 14; with this .9035, and on 15, and
#: with 1 .9068, and on 15.
LEAST_FACTOR_BEYOND = 0.9
#: By how many standard errors over regions what is chosen must be better than the fit without
#: queries to stand in its place (.893 with 3, .889 with 1). Regions with common rows count as
#: correlated: on 11 of the tasks .835 instead of .827, but .89 instead of .97 of the CRPS without
#: queries at ends of one rough input, where few of 24 regions are distinct (14 draws);
CLEARLY = 2.0
#: its share if it is not, unless it is worse by as much (.896 with .3, .885 with .7, but then
#: no higher than an exact GP's on 14).
UNCLEAR_SHARE = 0.5
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
#: Rows of all mirrors that are predicted to judge by, and as many to tune on, of which each model
#: sees a part: what differs by the rows that are drawn is less in their mean.
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
#: Kernels of what varies within gaps: this one, and the best of the others. Beside them, one model
#: of what varies across, with lengthscales as long as the gaps, which pays with this kernel alone.
#: Masks 2, 3 and 7, tuned on 0 and 1: RMSE 1.514 of the nearest rows, 1.498 of units, 1.572 of long
#: lengthscales, CRPS .780, .777 and .820, interval scores 7.84, 7.76 and 7.95; together 1.487,
#: .770 and 7.51.
N_KERNELS_IN_GAPS, ROUGH_KERNEL = 2, "matern12"
#: The weight of what varies across gaps. Masks 2 and 7, three states each: RMSE 1.475, 1.463,
#: 1.456, 1.453 and 1.460 with 0, .1, .2, .3 and .5, CRPS .761, .755, .753, .754 and .761, interval
#: scores 7.59, 7.28, 7.17, 7.14 and 7.22. With it or without, by its loss, RMSE of the states
#: differed by 3.7 % on mask 7, with .3 by .6. The gaps that models are tuned on would give it none.
SHARE_ACROSS_GAPS = 0.3
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
#: Where models begin that vary within gaps: with lengthscales of this part of their width, and no
#: less noise. From longer ones, some end in poor optima, by the rows that are drawn.
SHORT_IN_GAPS, RELAYED_NOISE = 0.1, 0.003
