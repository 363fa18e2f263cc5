#!/bin/sh
# Installs the system packages that tests need, where it may; otherwise says what is missing. Never fails the build:
# under CI a test that is skipped for a missing package fails by itself.
set -u
command -v chromium >/dev/null 2>&1 || missing="chromium"
fc-list 2>/dev/null | grep -q 'Noto.*CJK' || missing="${missing:-} fonts-noto-cjk"
[ -n "${missing:-}" ] || exit 0
if ! command -v apt-get >/dev/null 2>&1; then
    echo "not installed: ${missing}; the browser tests will be skipped" >&2
    exit 0
fi
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2>/dev/null; then
        echo "not installed: ${missing}; run: sudo apt-get install ${missing}" >&2
        exit 0
    fi
    as_root="sudo -n"
fi
echo "installing ${missing}"
$as_root apt-get -qq update >/dev/null
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $as_root apt-get -qq install -y --no-install-recommends $missing >/dev/null || true
exit 0
