"""Curves of searches with known ends."""

import unittest

from curves import Search, band, bands, best_so_far, mean_bands, reached, trials_to


def trial(number: int, best: float | None) -> dict:
    return {"event": "trial", "trial": number, "best_us": best, "default_us": 1.0}


class Curves(unittest.TestCase):
    def test_best_so_far_by_trial(self):
        events = [trial(0, 40.0), trial(0, 20.0), trial(2, 20.0), trial(3, 10.0), {"event": "done", "trials": 3}]
        self.assertEqual(best_so_far(events), [20.0, 20.0, 20.0, 10.0])

    def test_a_search_that_measured_nothing_has_no_curve(self):
        self.assertEqual(best_so_far([trial(0, None), {"event": "done", "trials": 0}]), [])

    def test_bands_are_relative_to_the_best_of_all(self):
        searches = [Search("w", "a", 1, [40.0, 20.0]), Search("w", "a", 2, [20.0]), Search("w", "b", 1, [40.0, 10.0])]
        found = bands(searches)
        self.assertEqual(found["a"].mean, [0.375, 0.5])
        self.assertEqual((found["a"].low, found["a"].high), ([0.25, 0.5], [0.5, 0.5]))
        self.assertEqual(found["b"].mean, [0.25, 1.0])

    def test_the_mean_of_workloads_ends_with_the_shortest(self):
        found = mean_bands([{"a": band([[0.5, 1.0]])}, {"a": band([[1.0, 1.0, 1.0]])}])
        self.assertEqual(found["a"].mean, [0.75, 1.0])

    def test_trials_to_a_share(self):
        fast, slow = Search("w", "a", 1, [20.0, 10.0]), Search("w", "a", 2, [20.0, 20.0])
        self.assertEqual((trials_to(fast, 10.0, 0.9), trials_to(slow, 10.0, 0.9)), (1, None))
        found = reached([fast, slow, Search("w", "a", 3, [20.0, 15.0, 15.0, 10.0])], 10.0, 0.95)
        self.assertEqual((found.reached, found.searches, found.mean), (2, 3, 2.0))
        self.assertAlmostEqual(found.deviation, 2**0.5)


if __name__ == "__main__":
    unittest.main()
