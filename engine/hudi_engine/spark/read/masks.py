"""The masks of a table as one array of words."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.snapshot.sidecar import read_mask_words

logger = logging.getLogger(__name__)

_MOST_WORDS = 1 << 19
"""Four megabytes, which go into each task of Spark: the bits of 33 million rows."""
_MOST_NEAR, _MOST_FAR = 128, 32
"""Sidecars that are opened here, on a local disk and in an object store."""


@dataclass(frozen=True)
class Masks:
    """The masks of a table.

    Args:
        slots: For the ordinal of each slice, which of the slots its words have; -1 for none.
        width: Words a slot; no row behind them is masked.
    """

    slots: npt.NDArray[np.int64]
    words: npt.NDArray[np.int64]
    width: int


def read_masks(storage: Storage, sidecars: Mapping[int, str]) -> Masks | None:
    """Return masks; None where they are too many or too large, or one cannot be read.

    Args:
        sidecars: Paths of sidecars by the ordinals of their slices.
    """
    if len(sidecars) > (_MOST_NEAR if storage.is_near else _MOST_FAR):
        return None
    most = _MOST_WORDS // max(len(sidecars), 1)
    try:
        found = on_threads(lambda path: read_mask_words(storage, path, most), list(sidecars.values()))
    except (OSError, LookupError, ValueError, pa.ArrowException) as error:
        logger.debug("Spark is left to read the masks of %s: %s", storage.base, error)
        return None
    some = [each for each in found if each is not None]
    if len(some) < len(found):
        return None
    width = max(map(len, some), default=0)
    words = np.zeros((len(some), width), dtype=np.int64)
    slots = np.full(max(sidecars, default=0) + 1, -1, dtype=np.int64)
    for slot, (ordinal, each) in enumerate(zip(sidecars, some, strict=True)):
        words[slot, : len(each)] = each
        slots[ordinal] = slot
    return Masks(slots, words.ravel(), width)
