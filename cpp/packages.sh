#!/usr/bin/env bash
# Makes sure that the C++ client can be built: installs Debian's packages when run as root, otherwise says which are
# missing. Ends with 0 if everything is there.
set -euo pipefail

packages=(
    g++ cmake ninja-build pkg-config ccache clang-format
    libgrpc++-dev protobuf-compiler-grpc protobuf-compiler libprotobuf-dev
    libssl-dev libzstd-dev nlohmann-json3-dev libgtest-dev
)

# What the build needs, however it was installed.
missing() {
    local tool module
    for tool in g++ cmake ninja pkg-config protoc grpc_cpp_plugin; do
        command -v "$tool" > /dev/null || echo "$tool"
    done
    command -v pkg-config > /dev/null || return 0
    for module in grpc++ protobuf libzstd libcrypto gtest nlohmann_json; do
        pkg-config --exists "$module" || echo "$module"
    done
}

absent=$(missing)
if [[ -z $absent ]]; then
    exit 0
fi
if [[ $(id -u) -eq 0 ]] && command -v apt-get > /dev/null; then
    echo "Installing what the C++ client needs: ${packages[*]} …"
    log=$(mktemp)
    if { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}"; } \
        > "$log" 2>&1 && [[ -z $(missing) ]]; then
        rm -f "$log"
        exit 0
    fi
    tail -n 20 "$log" >&2
    rm -f "$log"
fi
{
    echo "The C++ client cannot be built here; these are missing: ${absent//$'\n'/, }."
    echo "On Debian: sudo apt-get install --no-install-recommends ${packages[*]}"
} >&2
exit 1
