"""The ways to an answer: closures (`evaluate.py`), which are always right; the same counted in upstream's units (`counted.py`), where a limit could be
reached; and generated Python (`generate.py`) for usual shapes.

All three give the same answers. Which of them is asked is for `answers.py` and `evaluate.plan` to choose; nothing here keeps what it has found out.
"""
