# SPDX-License-Identifier: BSD-3-Clause
"""Assessments of classes: in `assessment`, under this name while other rooms still ask for it here."""

from lsgp.ensemble.assessment import ClassAssessment, ClassScores, assess_classes

__all__ = ["ClassAssessment", "ClassScores", "assess_classes"]
