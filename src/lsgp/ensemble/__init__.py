# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted list of models can do; imports every room from `method` to `tuning`."""
