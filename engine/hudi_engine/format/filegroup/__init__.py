"""File groups and slices: which files on storage make up a table."""

from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import LogFile
from hudi_engine.format.filegroup.view import FileSystemView

__all__ = ["BaseFile", "FileSlice", "FileSystemView", "LogFile"]
