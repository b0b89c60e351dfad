from __future__ import annotations

import numpy as np
import pandas as pd

from degem.data.generated import citation_years, shop_accounts


def test_a_seed_is_a_shop():
    first, again, other = (shop_accounts(known=60, per_month=20, seed=seed) for seed in (1, 1, 2))
    for table, same in zip(first, again, strict=True):
        pd.testing.assert_frame_equal(table, same)
    assert not first[0]["words"].equals(other[0]["words"])


def test_frauds_join_after_the_first_month_among_strangers():
    accounts, pairs = shop_accounts()
    assert set(pairs["source"]) | set(pairs["target"]) <= set(accounts["id"])
    assert set(accounts.loc[accounts["is_fraud"], "month"]) == {1, 2}
    taste = accounts.set_index("id")["words"]  # the longer an account's reviews, the longer its neighbours'
    honest = pairs[~pairs["source"].isin(accounts.loc[accounts["is_fraud"], "id"])]
    assert np.corrcoef(np.log(taste[honest["source"]] + 1), np.log(taste[honest["target"]] + 1))[0, 1] > 0.2


def test_papers_cite_their_own_topic_and_a_sixth_one_appears():
    graph = citation_years()
    year, topic = graph.columns["year"], graph.columns["topic"]
    np.testing.assert_array_equal(graph.labelled, topic < 5)
    assert year[topic == 5].min() == 2018
    assert graph.homophily() > 0.7


def test_words_drift():
    graph = citation_years(drift=0.3)
    year, topic = graph.columns["year"], graph.columns["topic"]
    means = [np.asarray(graph.features)[(topic == 0) & (year == at)].mean(axis=0) for at in (2010, 2011, 2020)]
    near, far = (np.abs(means[0] - other).mean() for other in means[1:])
    assert far > 1.3 * near
