"""Tests of a model that run before its commit."""
