"""Random people, rooms and operations against the real stores, with a check after each. See ``world.py``.

``python -m tests.secrecy --operations 100000 --seed 1`` runs as many as one likes; ``tests/test_secrecy.py``
runs a few with a printed seed.
"""
