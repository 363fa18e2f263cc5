"""When the next request may leave: requests and tokens a minute, and a service that asked us to stay away. Pure."""

from __future__ import annotations

SECONDS = 60.0


class Pacer:
    """Spaces requests evenly, without bursts. Times are seconds of any monotonic clock, passed in.

    requests_per_minute, tokens_per_minute: None for no limit.
    """

    def __init__(self, requests_per_minute: float | None = None, tokens_per_minute: float | None = None) -> None:
        self._request_s = SECONDS / requests_per_minute if requests_per_minute else 0.0
        self._token_s = SECONDS / tokens_per_minute if tokens_per_minute else 0.0
        self._request_at = self._tokens_at = self._held_until = float("-inf")

    def take(self, tokens: int, now: float) -> float:
        """Take the next place for a request of about `tokens`; how long to wait for it (s)."""
        at = max(now, self._request_at, self._tokens_at, self._held_until)
        self._request_at = at + self._request_s
        self._tokens_at = at + tokens * self._token_s
        return at - now

    def settle(self, estimated: int, used: int) -> None:
        """A request of `estimated` tokens took `used` of them."""
        self._tokens_at += (used - estimated) * self._token_s

    def hold(self, until: float) -> None:
        """No request before `until`."""
        self._held_until = max(self._held_until, until)

    def held(self, now: float) -> float:
        """How long the hold still lasts (s), 0 for none."""
        return max(0.0, self._held_until - now)
