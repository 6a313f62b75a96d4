"""Remove links of the chain of safety, and print which tests noticed: those that a word names, or all.

``PYTHONPATH=tests python -m mutations [WORD ...]``
"""

from __future__ import annotations

import sys

from mutations.links_removed import chosen_by, failing_with_all_links, removed_one_by_one, table


def main(words: list[str]) -> int:
    if not (chosen := chosen_by(words)):
        print(f"no link has {' or '.join(words)} in its part, name or file: write another word, or none for all links")
        return 1
    if failing := failing_with_all_links(chosen):
        print(f"The tests fail although no link is missing:\n{failing}")
        return 1
    results = []
    for result in removed_one_by_one(chosen):
        results.append(result)
        mark = "caught" if result.is_caught else "NOT CAUGHT"
        reasons = "; ".join(result.failed)
        print(f"{mark} in {result.seconds:.0f} s: {result.link.name}: {result.problem or reasons}", flush=True)
    print(f"\n{table(results)}")
    return 0 if all(result.is_caught for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
