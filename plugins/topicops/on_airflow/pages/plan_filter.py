"""Which changes the Plan page shows: words in its address, and the links that set them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from topicops.model.plans.plan import Blocked, GatedChange
from topicops.on_airflow.pages.parts import choices, filters, with_query
from topicops.steps.reporting.markup import Html

MOST_WORDS = 12
"""Most words of one kind that have a link; the search field finds the others."""
FEW = 5
"""A plan of so few changes needs no filter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Empty words let everything through."""

    action: str = ""
    state: str = ""
    """The word of the gate, or what came of the change; ``blocked`` for topics that no change can reach."""
    risk: str = ""
    owner: str = ""
    q: str = ""
    """A part of topic, owner, file or digest, in any case."""

    @property
    def words(self) -> dict[str, str]:
        """Those that are set, by name."""
        return {name: value for name in _NAMES if (value := getattr(self, name))}

    def lets(self, gated: GatedChange, state: str) -> bool:
        found = _words_of(gated, state)
        searched = f"{gated.change.topic} {gated.change.owner} {gated.change.location} {gated.digest}"
        return all(found[name] == word for name, word in self.words.items() if name != "q") and self._finds(searched)

    def lets_blocked(self, blocked: Blocked) -> bool:
        is_of_changes = self.action or self.risk or self.state not in ("", "blocked")
        is_owned = self.owner in ("", blocked.owner)
        searched = f"{blocked.topic} {blocked.owner} {blocked.location} {blocked.spec or ''}"
        return not is_of_changes and is_owned and self._finds(searched)

    def _finds(self, text: str) -> bool:
        return self.q.casefold() in text.casefold()


_NAMES = tuple(entry.name for entry in fields(Filter))


def _words_of(gated: GatedChange, state: str) -> Mapping[str, str]:
    change = gated.change
    return {"action": change.action, "state": state, "risk": change.risk.value, "owner": change.owner}


def address(run_id: str, chosen: Filter) -> str:
    """Give the address of the same page with this filter."""
    return with_query("plan", {"run_id": run_id, **chosen.words})


def filter_bar(
    run_id: str, chosen: Filter, changes: Sequence[GatedChange], state_of: Callable[[GatedChange], str]
) -> Html | None:
    """Show the words that tell the changes apart, each with how many there are, and a field to search in."""
    if len(changes) <= FEW and not chosen.words:
        return None
    found = [_words_of(gated, state_of(gated)) for gated in changes]
    counts = {name: Counter(words[name] for words in found if words[name]) for name in _NAMES if name != "q"}
    return filters(
        (_group(run_id, chosen, name, count) for name, count in counts.items()),
        q=chosen.q,
        address=address(run_id, replace(chosen, q="")),
        everything=address(run_id, Filter()) if chosen.words else "",
    )


def _group(run_id: str, chosen: Filter, name: str, counts: Counter[str]) -> Html | None:
    now = getattr(chosen, name)
    if len(counts) < 2 and not now:
        return None
    words = [*(word for word, _ in counts.most_common(MOST_WORDS)), *filter(None, [now])]
    shown = {word: counts[word] for word in words}
    return choices(name, shown, now, lambda word: address(run_id, replace(chosen, **{name: word})))
