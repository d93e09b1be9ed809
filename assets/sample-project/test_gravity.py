"""Run me with: python3 test_gravity.py"""

import unittest

from gravity import felt_weight, lightest_world


class FeltWeight(unittest.TestCase):
    def test_nothing_changes_at_home(self):
        self.assertAlmostEqual(felt_weight(60, "Earth"), 60)

    def test_the_moon_makes_us_light(self):
        self.assertLess(felt_weight(60, "Moon"), 60)

    def test_jupiter_makes_us_heavy(self):
        self.assertGreater(felt_weight(60, "Jupiter"), 60)


class Worlds(unittest.TestCase):
    def test_the_moon_is_the_lightest(self):
        self.assertEqual(lightest_world(), "Moon")


if __name__ == "__main__":
    unittest.main(verbosity=2)
