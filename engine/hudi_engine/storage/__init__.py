"""Reading, listing and publishing files below one table's base path."""

from hudi_engine.storage.base import FileStatus, Storage
from hudi_engine.storage.factory import open_storage
from hudi_engine.storage.given import use_settings

__all__ = ["FileStatus", "Storage", "open_storage", "use_settings"]
