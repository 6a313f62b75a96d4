"""Side-by-side ratios: one module a benchmark, run by ``make bench``; no part of the tests.

May import ``topicops``; ``harness`` knows no benchmark.
"""
