"""Spark Connect: Spark's own service behind a front that sends statements on Hudi tables to the engine.

Its modules import gRPC and the messages of PySpark 4, and are loaded only where a server listens for Spark Connect.
"""
