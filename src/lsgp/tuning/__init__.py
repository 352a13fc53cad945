# SPDX-License-Identifier: BSD-3-Clause
"""From rows to a weighted combination of models; imports every room from `method` to `inputs`.

Four ideas:

- A `hold_out` says what each target is predicted without.
- A family proposes, tunes and predicts models: `local`, `exact`, `average`, and for labels
  `log_odds`. Deleting its file and its name in `search.FAMILIES` removes it.
- `search` is one loop, successive halving by work, on the threads of `jobs`. A `budget` says how
  hard it tries; queries beyond the rows are `regions` to hold out.
- `weighing` stacks what was found, and `calibration` corrects the combination (`outcome`).

A model is a vector of `parameters`. `descent` lowers an `objective` of held-out predictions in a
`space`, the rows in one input transform; `evidence` tunes exact GPs, with `warping` of inputs, and
`posterior` draws their hyperparameters. `judging` scores a `candidate`; users see the `result`.
"""
