"""The version is that of the library that pkg-config finds; pyproject.toml has the rest."""
import os
import sys

from setuptools import setup

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import build_native

setup(version=build_native.pkg_config("--modversion").strip(),
      cffi_modules=["build_native.py:ffi"],
      options={"bdist_wheel": {"py_limited_api": "cp310"}})
