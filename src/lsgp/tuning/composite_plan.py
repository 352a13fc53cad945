# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of exact GPs whose kernel is a product over inputs or a sum, each with its reason."""

from __future__ import annotations

#: Rows of tables where a product is tried. Default fits with and without it, splits 10 to 13,
#: ratios of MSE and CRPS: .90 and .975 on yacht of 150 rows, .956 and .972 on yacht (277), .96 and
#: .98 on Friedman's function of 120, .979 and .995 on concrete of 300, .978 and .989 on diabetes
#: (398), 1.00 on boston of 150, kin8nm and powerplant of 250. The negative log density of yacht
#: rises by .09, of the others by -.02 to .03. Of more rows it does not pay (added to recorded fits,
#: six splits or three): 1.01 and 1.00 on boston (455), 1.01 and 1.01 on concrete (907), 1.01 and
#: 1.00 on kin8nm of 800, 1.00 and 1.00 on powerplant of 800.
FEWEST_FOR_PRODUCT, MOST_FOR_PRODUCT = 50, 400
#: Two inputs are mostly a map, in which coordinates interact. With many, each pair takes long.
FEWEST_PRODUCT_INPUTS, MOST_PRODUCT_INPUTS = 3, 30
#: The correlation of each input ("matern32" on yacht, added to recorded fits of splits 10 to 15:
#: ratios of MSE and CRPS 1.00 and 1.00, "matern52" .97 and .99).
PRODUCT_OF = "matern52"

#: Rows of tables where sums are tried. Default fits with and without, ratios of CRPS: .92 on
#: powerplant of 800 and 2,000 rows (five and two draws), .97 of 4,000, .98 on kin8nm of 800, .99
#: of 2,000 and 1.00 of 4,000, .985 on concrete of 300, .99 on powerplant of 250, .995 on boston of
#: 150 and of all rows, concrete and Friedman's function 1.00, yacht 1.00, diabetes of 300 1.01.
FEWEST_FOR_SUM, MOST_FOR_SUM = 50, 5000
#: With more inputs, twice as many lengthscales say little.
MOST_SUM_INPUTS = 30
#: Correlations of sums, of long distances and of short ones. Which are tried, efforts say.
SMOOTH_SUM, ROUGH_SUM = ("rbf", "matern32"), ("matern52", "matern12")
#: That of queries beyond the rows (CRPS on 17 development regions by itself, relative to an exact
#: GP of one correlation: .92, and .98 of the smooth one), and another transform of inputs for it.
SUM_BEYOND, BENT_BEYOND = ROUGH_SUM, "yeo-johnson"
#: The variance of the second with which tuning starts, relative to the first.
FIRST_CONSTANT = 0.5

#: Steps by the evidence of few rows, or of all if they are few,
COMPOSITE_ITERATIONS = 40
#: and rows that the last steps are of, at the most.
N_COMPOSITE_EVIDENCE = 1000
