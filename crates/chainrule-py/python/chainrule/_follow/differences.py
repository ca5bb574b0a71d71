"""The formula of central differences."""

STEPS = ((3e-3, 45.0), (6e-3, -9.0), (9e-3, 1.0))
"""The steps of a difference whose error falls with the sixth power of the step, and their weights
in 60 times the first step.
"""
