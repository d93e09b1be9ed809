"""The scripted model behind the real agents: what it says, and how each vendor's API words it."""
