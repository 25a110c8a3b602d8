"""The policy and the counts of its limits in memory."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.ids import Millis
from weft.ports.policies import StoredPolicy, WindowCount
from weft.stores.memory.content import MemoryContent

CountKey = tuple[str, str, int]


class MemoryPolicies:
    """The policy of a memory store."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content

    async def newest(self) -> int:
        return len(self._content.policies)

    async def get(self, version: int) -> StoredPolicy | None:
        known = self._content.policies
        return known[version - 1] if 1 <= version <= len(known) else None

    async def history(self, *, upto: int | None = None, limit: int = 100) -> Sequence[StoredPolicy]:
        return self._content.policies[slice(None, upto)][::-1][:limit]

    async def put(self, policy: StoredPolicy) -> bool:
        if policy.version != len(self._content.policies) + 1:
            return False
        self._content.policies.append(policy)
        return True

    async def take(self, counts: Sequence[WindowCount], *, now: Millis) -> WindowCount | None:
        used = self._content.policy_counts
        for key in [key for key, (_, ends_at) in used.items() if ends_at <= now]:
            del used[key]
        for count in counts:
            if used.get(_count_key(count), (0, 0))[0] >= count.limit:
                return count
        for count in counts:
            used[_count_key(count)] = (used.get(_count_key(count), (0, 0))[0] + 1, count.ends_at)
        return None

    async def give_back(self, counts: Sequence[WindowCount]) -> None:
        used = self._content.policy_counts
        for count in counts:
            number, ends_at = used.get(_count_key(count), (0, 0))
            if number:
                used[_count_key(count)] = (number - 1, ends_at)


def _count_key(count: WindowCount) -> CountKey:
    return count.tenant, count.name, count.begins_at
