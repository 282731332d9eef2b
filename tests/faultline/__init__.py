"""Every fault in turn, really brought about: what the person sees, what the log says, what is kept, when it heals.

    python -m tests.faultline               # the table
    python -m tests.faultline endpoint      # one area of it

``tests/test_faultline.py`` runs the same scenarios. A scenario asserts what must hold and returns what it saw.
"""
