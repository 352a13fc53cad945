# SPDX-License-Identifier: BSD-3-Clause
"""What other libraries make of the labels of the development suite, beside `suite.py`.

CatBoost has 500 trees and its own categories; logistic regression has standardized one-hot inputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Labels = NDArray[Any]
#: Inverse of the ridge of logistic regression.
C = 0.1


def catboost(X: pd.DataFrame, y: Labels, seed: int) -> Any:
    from catboost import CatBoostClassifier

    X = as_catboost(X)
    is_text = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    model = CatBoostClassifier(
        iterations=500,
        cat_features=is_text,
        random_seed=seed,
        thread_count=1,
        verbose=0,
        allow_writing_files=False,
    )
    model.fit(X, y)
    return _Reading(model, as_catboost)


def as_catboost(X: pd.DataFrame) -> pd.DataFrame:
    """Categories as text, which has no holes."""
    is_number = {name: pd.api.types.is_numeric_dtype(X[name]) for name in X}
    return pd.DataFrame(
        {
            name: X[name] if is_number[name] else X[name].astype(object).fillna("").astype(str)
            for name in X.columns
        }
    )


def logistic(X: pd.DataFrame, y: Labels, seed: int) -> Any:
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    encoder = make_column_transformer(
        (numbers, make_column_selector(dtype_include=np.number)),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude=np.number)),
    )
    return make_pipeline(encoder, LogisticRegression(C=C, max_iter=5000)).fit(X, y)


class _Reading:
    """A model of tables that are read first."""

    def __init__(self, model: Any, read: Any) -> None:
        self.model, self.read, self.classes_ = model, read, model.classes_

    def predict_proba(self, X: pd.DataFrame) -> NDArray[np.float64]:
        return np.asarray(self.model.predict_proba(self.read(X)))


PEERS = {"catboost": catboost, "logistic": logistic}
