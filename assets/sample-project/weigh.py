"""Print how heavy something feels on every world we know: python3 weigh.py 60"""

import sys

from gravity import GRAVITY, felt_weight

BAR_WIDTH = 30


def main(arguments):
    try:
        kilograms = float(arguments[0])
    except (IndexError, ValueError):
        print(__doc__, file=sys.stderr)
        return 2
    weights = {world: felt_weight(kilograms, world) for world in GRAVITY}
    longest = max(weights.values()) or 1
    for world, weight in weights.items():
        bar = "#" * round(BAR_WIDTH * weight / longest)
        print(f"{world:<8} {weight:>8.1f} kg  {bar}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
