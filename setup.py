"""Packaging of dbt-hudi: the dbt adapter and the engine it calls."""

from pathlib import Path

from setuptools import find_namespace_packages, find_packages, setup

HERE = Path(__file__).parent
VERSION = "0.1.0"

setup(
    name="dbt-hudi",
    version=VERSION,
    description="A dbt adapter that builds real Apache Hudi tables on plain PySpark, without the Hudi JVM bundle",
    long_description=(HERE / "README.md").read_text(encoding="utf-8")
    if (HERE / "README.md").exists()
    else "",
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=find_namespace_packages(include=["dbt.adapters.hudi*", "dbt.include.hudi*"])
    + find_packages("engine"),
    package_dir={"hudi_engine": "engine/hudi_engine"},
    package_data={
        "hudi_engine": ["py.typed"],
        "dbt.include.hudi": ["*.yml", "*.properties", "macros/**/*.sql"],
    },
    include_package_data=True,
    install_requires=[
        "dbt-core>=1.10,<1.13",
        "dbt-spark>=1.10,<1.12",
        "dbt-adapters>=1.14,<2.0",
        "pyspark>=3.5,<4.4",
        "pyarrow>=17.0",
        "fastavro>=1.9",
        "numpy>=1.24",
        "pandas>=2.0",
    ],
    entry_points={"console_scripts": ["hudi-engine=hudi_engine.cli:main"]},
)
