"""Source code whose training loops run as compiled steps: for tests that compare both."""

import ast

STEP = "_step"


def compiled_loops(source, filename):
    """The code with the body of each loop that calls `backward` in a compiled function, and how
    many there are; names that the body binds go in as arguments and come out as results."""
    tree = ast.parse(source, filename)
    loops = _Loops()
    tree = ast.fix_missing_locations(loops.visit(tree))
    return ast.unparse(tree), loops.found


def with_locals(source):
    """The code with a function `main` that gives its variables back."""
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "main":
            node.body.append(ast.parse("return locals()").body[0])
    return ast.unparse(ast.fix_missing_locations(tree))


class _Loops(ast.NodeTransformer):
    def __init__(self):
        self.found = 0

    def visit_For(self, loop):
        self.generic_visit(loop)
        if not any(_calls(node, "backward") for node in loop.body):
            return loop
        # Statements that print or append to lists come after the step.
        first = next(i for i, node in enumerate(loop.body) if not _is_data(node))
        last = max(i for i, node in enumerate(loop.body) if _calls(node, "backward"))
        while last + 1 < len(loop.body) and not _talks(loop.body[last + 1]):
            last += 1
        body = loop.body[first : last + 1]
        self.found += 1
        name = f"{STEP}{self.found}"
        bound, carried = _names(body)
        arguments = ", ".join(sorted(carried & bound))
        results = ", ".join(sorted(bound))
        step = ast.parse(f"def {name}({arguments}):\n    return {results},\n{name} = _compile({name})").body
        step[0].body[:0] = body
        call = ast.parse(f"{results}, = {name}({arguments})").body
        loop.body[first : last + 1] = call
        return [*step, loop]


def _calls(node, *names):
    return any(isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in names for n in ast.walk(node))


def _is_data(node):
    """Batches are drawn before the step, as a program's random numbers are its own."""
    return isinstance(node, ast.Assign) and _calls(node, "randint", "randn", "rand")


def _talks(node):
    called = {n.func.id for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    return "print" in called or _calls(node, "item", "append")


def _names(body):
    """Names that the statements bind and that are tensors or plain values afterwards, and those
    that they read before they bind them.
    """
    bound, carried, loops = set(), set(), set()

    def load(node):
        for n in ast.walk(node):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id not in bound:
                carried.add(n.id)

    def see(statement):
        if isinstance(statement, ast.For):
            load(statement.iter)
            loops.update(n.id for n in ast.walk(statement.target) if isinstance(n, ast.Name))
            for inner in statement.body:
                see(inner)
        elif isinstance(statement, (ast.With, ast.If)):
            load(statement.items[0] if isinstance(statement, ast.With) else statement.test)
            for inner in [*statement.body, *getattr(statement, "orelse", [])]:
                see(inner)
        else:
            load(statement)
            if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                carried.add(statement.target.id)
            bound.update(n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))

    for statement in body:
        see(statement)
    return bound - loops, carried - loops
