"""What to try again, and when: the one retry policy, as a pure decision.

A typed error says whether a second try can help. The waits double and are spread by chance, so that many sessions do
not come back at the same moment. What a server asks for is honoured, never undercut; if it asks for more than
a person would wait, the call fails at once and says so.
"""

import attrs

from zutd.models.base import RETRYABLE, ModelError


@attrs.frozen(kw_only=True)
class Retry:
    """The policy. Times are seconds.

    ``spread`` is the part by which a wait may be longer or shorter; ``longest_demand`` the most that a server may
    ask for; ``budget`` the most that one call may spend on waiting, all its tries together.
    """

    attempts: int = 5
    first: float = 0.5
    factor: float = 2.0
    spread: float = 0.25
    longest_demand: float = 60.0
    budget: float = 60.0

    def decide(
        self, *, attempt: int, error: ModelError, elapsed: float, rand: float, delivered: bool = False
    ) -> float | None:
        """Say how long to wait before the next try, or None if there should be none.

        ``attempt`` is how many tries there were (1 after the first), ``elapsed`` how long this call has waited
        between them so far, ``rand`` a number in [0, 1). ``delivered`` says that content of the failed try has
        reached a client and was not taken back.
        """
        if delivered or attempt >= self.attempts or error.kind not in RETRYABLE:
            return None
        left = self.budget - elapsed
        wait = self.first * self.factor ** (attempt - 1) * (1 + self.spread * (2 * rand - 1))
        if error.retry_after is not None:
            if error.retry_after > min(self.longest_demand, left):
                return None
            # a little later than asked, for the same reason; but what was asked fits, so it shall be tried
            return min(max(wait, error.retry_after * (1 + 0.1 * rand)), left)
        return wait if wait <= left else None


DEFAULT = Retry()
