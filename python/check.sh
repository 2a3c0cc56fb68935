#!/usr/bin/env bash
# Builds the wheel and the command, installs the wheel into an empty environment, and runs there the tests and
# the notebooks: python/check.sh. With --long also on Ray, and with every supported Python that is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

long=
case ${1-} in
    "") ;;
    --long) long=yes ;;
    *)
        echo "usage: python/check.sh [--long]" >&2
        exit 2
        ;;
esac

place=$PWD/target/python
rm -rf "$place/wheels" "$place/fresh"
mkdir -p "$place"

# The environment that builds is kept: it never sees the package.
[ -x "$place/build/bin/maturin" ] || {
    python3 -m venv "$place/build"
    "$place/build/bin/pip" install --quiet "maturin>=1.9,<2" ruff
}
"$place/build/bin/ruff" format --check python
"$place/build/bin/ruff" check python
# The command's results are compared, not its speed.
cargo build -p percid-cli --features trace
cp target/debug/percid "$place/percid"
(cd python && "$place/build/bin/maturin" build --release --locked --target-dir ../target --out "$place/wheels")
wheel=$(ls "$place"/wheels/percid-*.whl)
ls -l "$wheel"

export PERCID_COMMAND=$place/percid

# What the package itself needs is in the wheel or comes with it: nothing else is there at first.
python3 -m venv "$place/fresh"
python=$place/fresh/bin/python
"$python" -m pip install --quiet "$wheel"
"$python" python/measure.py

extras=pandas,polars,xarray,plots,dask,remote
"$python" -m pip install --quiet "$wheel[$extras${long:+,ray}]" \
    pytest hypothesis mypy joblib "moto[server]" s3fs nbclient nbformat ipykernel
"$python" -m mypy --config-file python/pyproject.toml -p percid
# Not where the sources are, so that the wheel is tested.
(cd python/tests && "$python" -m pytest -q -p no:cacheprovider --durations=5)
"$python" python/notebooks.py examples/notebooks/*.ipynb docs/how-to/sweep-parameters.md \
    docs/how-to/write-a-policy-in-python.md python/README.md

[ "$long" ] || exit 0
for other in python3.10 python3.12 python3.13 python3.14; do
    command -v "$other" >/dev/null && "$other" --version >/dev/null 2>&1 || continue
    rm -rf "$place/other"
    "$other" -m venv "$place/other"
    "$place/other/bin/pip" install --quiet "$wheel" pytest hypothesis pandas polars pyarrow xarray
    (cd python/tests && "$place/other/bin/python" -m pytest -q -p no:cacheprovider test_package.py test_run.py)
done
