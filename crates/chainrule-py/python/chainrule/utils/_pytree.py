"""Nests of lists, tuples and dictionaries, leaf by leaf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class TreeSpec(NamedTuple):
    """The form of a nest: the type of its outer part with what belongs to it, and the forms inside;
    no type for a leaf.
    """

    type: Any
    context: Any
    children: list[TreeSpec]

    @property
    def num_leaves(self) -> int:
        """The number of leaves."""
        return 1 if self.type is None else sum(child.num_leaves for child in self.children)


_LEAF = TreeSpec(None, None, [])


def _parts(tree: Any, is_leaf: Callable[[Any], bool] | None) -> tuple[list[Any], Any] | None:
    if is_leaf is not None and is_leaf(tree):
        return None
    if isinstance(tree, dict):
        return list(tree.values()), list(tree)
    if isinstance(tree, (list, tuple)):
        return list(tree), None
    return None


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a nest in their order, and its form.

    ```
    from chainrule.utils import _pytree
    leaves, form = _pytree.tree_flatten({"a": 1, "b": [2, (3,)]})
    assert leaves == [1, 2, 3]
    assert _pytree.tree_unflatten([4, 5, 6], form) == {"a": 4, "b": [5, (6,)]}
    ```
    """
    parts = _parts(tree, is_leaf)
    if parts is None:
        return [tree], _LEAF
    leaves, forms = [], []
    for part in parts[0]:
        inner, form = tree_flatten(part, is_leaf)
        leaves += inner
        forms.append(form)
    return leaves, TreeSpec(type(tree), parts[1], forms)


def tree_unflatten(leaves: Any, treespec: TreeSpec) -> Any:
    """The nest of this form with these leaves."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten: {len(leaves)} leaves for a nest of {treespec.num_leaves}")
    rest = iter(leaves)

    def made(form: TreeSpec) -> Any:
        if form.type is None:
            return next(rest)
        parts = [made(child) for child in form.children]
        if issubclass(form.type, dict):
            return form.type(zip(form.context, parts))
        return form.type(*parts) if hasattr(form.type, "_fields") else form.type(parts)

    return made(treespec)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a nest in their order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The form of a nest."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The nest of what a function makes of each leaf, and of the leaves of others of its form."""
    leaves, form = tree_flatten(tree, is_leaf)
    others = [tree_flatten(rest, is_leaf) for rest in rests]
    if any(other != form for _, other in others):
        raise ValueError("tree_map: the nests are of different forms")
    return tree_unflatten([func(*row) for row in zip(leaves, *(found for found, _ in others))], form)


def tree_map_only(types: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """As `tree_map`, of leaves of these types alone."""
    return tree_map(lambda x: func(x) if isinstance(x, types) else x, tree, is_leaf=is_leaf)


__all__ = ["TreeSpec", "tree_flatten", "tree_leaves", "tree_map", "tree_map_only", "tree_structure", "tree_unflatten"]
