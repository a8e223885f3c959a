from hudi_engine import __version__ as version

__all__ = ["version"]
