# SPDX-License-Identifier: BSD-3-Clause
"""From rows to a weighted list of models; imports every room from `method` to `inputs`."""
