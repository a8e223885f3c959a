# Nearly every target is one command of dev.py; `make` or `make help` lists them.
PYTHON ?= python3

.DEFAULT_GOAL := help
.PHONY: help setup demo test check unit faults spark dbt spark35 judge bench golden docs clean

help: ## list the targets
	@grep -hE '^[a-z0-9 ]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 32

setup: ## make .venv with everything in it
	$(PYTHON) dev.py setup

demo: ## build the dbt project of integration_tests and read it back
	$(PYTHON) dev.py demo

test: ## every tier of tests
	$(PYTHON) dev.py test

check: ## ruff, mypy, import floors and the unit tests: the quick loop
	$(PYTHON) dev.py test style unit

unit faults spark dbt spark35 judge: ## one tier of tests
	$(PYTHON) dev.py test $@

bench: ## times against other table formats
	$(PYTHON) dev.py bench

golden: ## make the golden tables again with Apache Hudi
	$(PYTHON) dev.py setup all
	$(PYTHON) dev.py run python tests/golden/make_golden.py

docs: ## the configuration reference from the option registry, and the site
	$(PYTHON) dev.py docs

clean: ## remove what the tests and the demo left (the environments stay)
	rm -rf integration_tests/landing integration_tests/warehouse integration_tests/target integration_tests/logs
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
