#!/bin/sh
# Installs the system packages that tests need, where it may; otherwise says what is missing. Never fails the build:
# under CI a test that is skipped for a missing package fails by itself.
set -u
command -v chromium >/dev/null 2>&1 || missing="chromium"
fc-list 2>/dev/null | grep -q 'Noto.*CJK' || missing="${missing:-} fonts-noto-cjk"
# A virtual sound card and a terminal for the live session's test.
for pair in pulseaudio:pulseaudio paplay:pulseaudio-utils tmux:tmux; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || missing="${missing:-} ${pair##*:}"
done
{ ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null; } | grep -q libportaudio || missing="${missing:-} libportaudio2"
ls /usr/lib/*/alsa-lib/libasound_module_pcm_pulse.so >/dev/null 2>&1 || missing="${missing:-} libasound2-plugins"
[ -n "${missing:-}" ] || exit 0
if ! command -v apt-get >/dev/null 2>&1; then
    echo "not installed: ${missing}; the browser tests and the sound card's will be skipped" >&2
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
