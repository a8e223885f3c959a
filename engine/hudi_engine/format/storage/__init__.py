"""Reading, listing and publishing files below one table's base path."""

from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.given import use_settings
from hudi_engine.format.storage.read_only import is_refusal

__all__ = ["FileStatus", "Storage", "is_refusal", "open_storage", "use_settings"]
