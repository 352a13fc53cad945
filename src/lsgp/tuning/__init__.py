# SPDX-License-Identifier: BSD-3-Clause
"""From rows to a weighted list of models; imports every room from `method` to `inputs`.

`search` lists the stages and runs them; each is a file of `stages`. They read a `TuningProblem`, in
four parts: what is `given`, what of it `admission` lets them try, the `judging` of what they find,
and the `problem` itself, which makes the rows in each input transform.

- A model is a vector (`parameters`) with `priors`; `descent` lowers an `objective` of its
  `leave_one_out` predictions, or raises the `evidence` of an exact GP. `calibration` follows.
- A `contender` is judged by a `comparison`; `weights` are chosen, `outcome` makes of all that was
  found what `result` shows users.
- Numbers are in `plan` and the files named after it, those that the setting ``effort`` decides in
  `effort_levels`; `prices` are what predictions cost, and `clock` says when to stop.
- Of few rows: `integration`. Of kernels of several correlations: `composites`. Of many inputs:
  `narrowing` to some. Of maps: the `angle` of their axes.
- Folders of their own have labels (`classes`), boosted `trees` (by `folds`), `functions` without
  noise, and queries `beyond` the rows or in gaps of them.
- On a device, candidates ask together: `gathering`.
"""
