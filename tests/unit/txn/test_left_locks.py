"""Locks, and rights to break them, that a process leaves behind and lives on: others of its machine must not wait for it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.txn.lock import TableLock
from hudi_engine.table.txn.owner import LOCK_FILES, LOCK_PATH, Owner

from tests.helpers.owners import is_given_up, wait_until


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


class Failing(LocalStorage):
    """Fails once at a call of one kind whose path begins so, before it or after it was done.

    Args:
        base: Where the files are.
        call: ``create``, ``remove`` or ``replace``.
        start: How the path begins.
        error: What is raised.
        late: Whether the call is done all the same.
    """

    def __init__(
        self, base: str, call: str, start: str, error: type[BaseException], *, late: bool = False
    ) -> None:
        super().__init__(base)
        self._at, self._error, self._late = (call, start), error, late

    def _fail(self, call: str, path: str, *, late: bool) -> None:
        if call == self._at[0] and path.startswith(self._at[1]) and late == self._late:
            self._at = "", ""
            raise self._error

    def create(self, path: str, data: bytes) -> None:
        self._fail("create", path, late=False)
        super().create(path, data)
        self._fail("create", path, late=True)

    def remove(self, path: str) -> None:
        self._fail("remove", path, late=False)
        super().remove(path)
        self._fail("remove", path, late=True)


class FailingTwice(Failing):
    """Fails at the next replacement too."""

    def replace(self, path: str, data: bytes) -> None:
        if self._at == ("", ""):
            self._at = "done", ""
            raise OSError("disk full")
        super().replace(path, data)


ERRORS = pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])


@ERRORS
@pytest.mark.parametrize("kind", [Failing, FailingTwice])
def test_a_lock_that_could_not_be_removed_is_given_up(
    kind: type[Failing], error: type[BaseException], storage: LocalStorage
) -> None:
    failing = kind(storage.base, "remove", LOCK_PATH, error)
    told = pytest.raises(KeyboardInterrupt) if error is KeyboardInterrupt else nullcontext()
    with told, TableLock(failing):
        pass
    wait_until(lambda: is_given_up(storage, LOCK_PATH))
    with TableLock(storage, wait_ms=1000):
        pass


@ERRORS
def test_a_lock_whose_taking_was_cut_off_is_given_up(
    error: type[BaseException], storage: LocalStorage
) -> None:
    with pytest.raises(error), TableLock(Failing(storage.base, "create", LOCK_PATH, error, late=True)):
        pass
    assert is_given_up(storage, LOCK_PATH)


@ERRORS
def test_a_breaker_that_does_not_remove_the_lock_passes_its_right_on(
    error: type[BaseException], storage: LocalStorage
) -> None:
    storage.create(LOCK_PATH, Owner.current().to_json())
    with pytest.raises(error), TableLock(Failing(storage.base, "remove", LOCK_PATH, error)):
        pass
    (right,) = storage.list(LOCK_FILES)
    assert storage.exists(LOCK_PATH) and is_given_up(storage, right.path)


@ERRORS
def test_a_right_whose_winning_was_cut_off_is_passed_on(
    error: type[BaseException], storage: LocalStorage
) -> None:
    storage.create(LOCK_PATH, Owner.current().to_json())
    start = f"{LOCK_FILES}/broken"
    with pytest.raises(error), TableLock(Failing(storage.base, "create", start, error, late=True)):
        pass
    (right,) = storage.list(LOCK_FILES)
    assert is_given_up(storage, right.path)
