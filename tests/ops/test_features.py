from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
import torch

from degem.ops.features import is_bag_of_words, row_normalize, row_norms, to_tensor


def test_rows_have_unit_norm_whatever_their_sign_and_storage() -> None:
    dense = np.array([[1, -3, 0], [0, 0, 0], [2, 2, 4]], dtype=np.float32)
    expected = np.array([[0.25, -0.75, 0], [0, 0, 0], [0.25, 0.25, 0.5]], dtype=np.float32)
    np.testing.assert_allclose(row_normalize(dense), expected)
    sparse = row_normalize(sp.csr_array(dense))
    assert sparse.dtype == np.float32
    np.testing.assert_allclose(sparse.toarray(), expected)


def test_norms_of_rows_hold_beyond_what_float32_can_square() -> None:
    dense = np.array([[3e30, -4e30], [0, 0], [3, 4]], dtype=np.float32)
    for features in (dense, np.asfortranarray(dense), sp.csr_array(dense)):
        absolute, square = row_norms(features)
        np.testing.assert_allclose(absolute, [7e30, 0, 7], rtol=1e-6)
        np.testing.assert_allclose(square, [5e30, 0, 5], rtol=1e-6)


def test_the_caller_s_features_stay_as_they_are() -> None:
    dense = np.array([[1, 3]], dtype=np.float32)
    sparse = sp.csr_array(dense)
    row_normalize(dense)
    row_normalize(sparse)
    np.testing.assert_array_equal(dense, [[1, 3]])
    np.testing.assert_array_equal(sparse.data, [1, 3])


def test_read_only_arrays_become_tensors_without_a_warning() -> None:
    dense = np.eye(2, dtype=np.float32)
    dense.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        strided, sparse = to_tensor(dense), to_tensor(sp.csr_array(dense))
    assert sparse.layout == torch.sparse_csr
    assert torch.equal(strided, sparse.to_dense())


def test_rows_too_small_to_be_inverted_stay_as_they_are() -> None:
    tiny = np.full((2, 3), 1e-42, dtype=np.float32)
    np.testing.assert_array_equal(row_normalize(tiny), tiny)


def test_a_bag_of_words_is_wide_and_mostly_zeros() -> None:
    rng = np.random.default_rng(0)
    words = (rng.random((200, 100)) < 0.35).astype(np.float32)  # as many as reviews of Amazon-Photo have
    assert is_bag_of_words(words)
    assert is_bag_of_words(sp.csr_array(words))
    for table in (words[:, :50], 1 - words, -words):
        assert not is_bag_of_words(table)
