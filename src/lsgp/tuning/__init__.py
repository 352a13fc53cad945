# SPDX-License-Identifier: BSD-3-Clause
"""From rows to a weighted combination of models; imports every room from `method` to `inputs`.

Four ideas:

- A `hold_out` lists the rows that each target is predicted without.
- A family proposes, tunes and predicts models: `local`, `exact`, `average`, `trees`, and for labels
  `log_odds`. Deleting its file and its name in `search.FAMILIES` removes it.
- `search` is one loop, successive halving by work, in the threads of `jobs`. A `budget` limits its
  effort. For queries beyond the rows, the hold-out consists of `regions`.
- `weighing` finds the weights of the models by stacking; `outcome` calibrates their combination.

A `space` has the rows in one input transform, and `data` all of them with the settings. `family`
also scores the held-out predictions of a tuned model; users see the `result`.
"""
