#!/usr/bin/env bash
# install.sh PYTHON STAMP: builds the native runtime, installs it beside rl4sys, and touches the stamp. Where it cannot be
# built this says so and succeeds: policies then run with numpy.
set -euo pipefail
python=$1 stamp=$2
if ! command -v "${CXX:-c++}" > /dev/null; then
    echo "There is no C++ compiler, so policies run with numpy, which is slower. On Debian: apt-get install g++, then make setup."
    exit 0
fi
log=$(mktemp)
echo "Building the native runtime (a minute) …"
if "$python" -m pip install --disable-pip-version-check --no-deps --force-reinstall "$(dirname "$0")/.." > "$log" 2>&1; then
    rm -f "$log"
    touch "$stamp"
else
    echo "The native runtime could not be built, so policies run with numpy, which is slower. The log: $log"
fi
