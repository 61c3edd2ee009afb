#!/usr/bin/env bash
# Makes sure that the page can be tested in a real browser: installs Debian's chromium when run as root, otherwise says
# what is missing. Ends with 0 if everything is there.
set -euo pipefail

packages=(chromium fonts-dejavu-core)

if command -v chromium > /dev/null; then
    exit 0
fi
if [[ $(id -u) -eq 0 ]] && command -v apt-get > /dev/null; then
    echo "Installing what tests in a browser need: ${packages[*]} …"
    log=$(mktemp)
    if { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}"; } \
        > "$log" 2>&1 && command -v chromium > /dev/null; then
        rm -f "$log"
        exit 0
    fi
    tail -n 20 "$log" >&2
    rm -f "$log"
fi
{
    echo "The page cannot be tested in a browser here; chromium is missing."
    echo "On Debian: sudo apt-get install --no-install-recommends ${packages[*]}"
} >&2
exit 1
