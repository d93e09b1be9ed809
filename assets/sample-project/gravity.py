"""How heavy things feel on other worlds."""

# Surface gravity, in metres per second squared.
GRAVITY = {
    "Mercury": 3.70,
    "Venus": 8.87,
    "Earth": 9.81,
    "Moon": 1.62,
    "Mars": 3.71,
    "Jupiter": 24.79,
    "Saturn": 10.44,
    "Uranus": 8.87,
    "Neptune": 11.15,
}


def felt_weight(kilograms, world):
    """Return what a scale made on Earth would show on `world`, in kilograms."""
    return kilograms * GRAVITY["Earth"] / GRAVITY[world]


def lightest_world():
    """Return the name of the world where everything feels lightest."""
    return min(GRAVITY, key=GRAVITY.get)
