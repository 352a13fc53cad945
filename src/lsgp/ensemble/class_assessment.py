# SPDX-License-Identifier: BSD-3-Clause
"""Assessments of classes: in `assessment`, and here while other rooms ask here."""

from lsgp.ensemble.assessment import ClassAssessment, ClassScores, assess_classes

__all__ = ["ClassAssessment", "ClassScores", "assess_classes"]
