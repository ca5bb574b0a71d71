"""The mistake in a backward pass that was written by hand: its line, and the corrected line.

The user's own backward runs, statement by statement, at random inputs, and every value in it is
laid beside the values of the right backward pass. One edit of the source text is tried at a time,
by running the edited backward; an edit that makes all gradients right, also at fresh inputs, is the
correction.
"""

from .case import Case, is_of_held_values, wrong_gradients
from .kinks import beside_kinks
from .functions import of_forward_and_backward, of_function
from .report import Followed, follow

__all__ = ["Case", "Followed", "beside_kinks", "follow", "is_of_held_values", "of_forward_and_backward", "of_function", "wrong_gradients"]
