"""Programs around derivatives of nests and tuples, and around weights that are computed of other
parameters.
"""

import copy


def _double(program):
    def run(torch):
        torch.set_default_dtype(torch.float64)
        try:
            return program(torch)
        finally:
            torch.set_default_dtype(torch.float32)

    run.__module__ = program.__module__
    return run


def _nest(torch):
    x = torch.tensor([1.0, 2.0, 3.0])
    p = {"a": torch.tensor([2.0, 1.0, 0.0]), "b": (torch.tensor(3.0), [torch.ones(3) * 0.5])}
    return p, x, lambda p, x: (p["a"] * x**2).sum() * p["b"][0] + (p["b"][1][0] * x).exp().sum()


@_double
def gradients_of_nests(torch):
    p, x, f = _nest(torch)
    func = torch.func
    both = func.grad(lambda p, x: (f(p, x), x * 2), has_aux=True)(p, x)
    return func.grad(f)(p, x), func.grad(f, argnums=(0, 1))(p, x), func.grad_and_value(f)(p, x), both


@_double
def products_with_nests(torch):
    p, x, f = _nest(torch)
    func = torch.func
    out, back = func.vjp(lambda p, x: (p["a"] * x, x * 2), p, x)
    again = [back((torch.ones(3), torch.ones(3) * k)) for k in (1.0, 2.0)]
    tangent = {"a": torch.ones(3), "b": (torch.tensor(1.0), [torch.zeros(3)])}
    return out, again, func.jvp(f, (p, x), (tangent, torch.ones(3))), func.jacrev(lambda p: p["a"] * x * p["b"][0])(p)


@_double
def ensemble_of_modules(torch):
    nn, func = torch.nn, torch.func
    torch.manual_seed(2)
    models = [nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)) for _ in range(3)]
    params, buffers = func.stack_module_state(models)
    base = copy.deepcopy(models[0])
    x = torch.randn(5, 3)
    out = func.vmap(lambda p, b: func.functional_call(base, (p, b), (x,)))(params, buffers)
    own = {k: v.detach() for k, v in base.named_parameters()}
    each = func.vmap(func.grad(lambda p, x: func.functional_call(base, p, (x[None],)).square().sum()), in_dims=(None, 0))(own, x)
    return out, each, [v.requires_grad for v in params.values()]


@_double
def derivatives_by_tuples(torch):
    x, y = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.5, 1.0, 2.0])
    F = torch.autograd.functional
    ones = torch.ones(3)

    def f(x, y):
        return (x * y).sum() * x[0], x * 2

    def h(x, y):
        return (x**2 * y).sum() * y[1]

    out = [F.jacobian(f, (x, y)), F.hessian(h, (x, y)), F.vjp(f, (x, y), (torch.tensor(2.0), ones)), F.jvp(f, (x, y), (ones, x))]
    out += [F.hvp(h, (x, y), (ones, y)), F.vhp(h, (x, y), (ones, y)), F.jacobian(lambda x: x.sum(), x), F.jacobian(lambda x: torch.ones(2), x)]
    z = torch.tensor([1.0, 2.0], requires_grad=True)
    F.jacobian(lambda x: x**3, z, create_graph=True).sum().backward()
    return out, z.grad


def jacobian_of_no_dependence_strict(torch):
    return torch.autograd.functional.jacobian(lambda x: torch.ones(2), torch.ones(3), strict=True)


def _trained(torch, module, x):
    torch.manual_seed(4)
    m = module(torch.nn.utils.parametrizations)
    optimizer = torch.optim.SGD(m.parameters(), 0.1)
    out = [sorted(m.state_dict()), [n for n, _ in m.named_parameters()]]
    for _ in range(3):
        optimizer.zero_grad()
        loss = (m(x) ** 2).sum()
        loss.backward()
        optimizer.step()
        out.append(loss)
    out += [copy.deepcopy(m)(x), type(m).__name__]
    m.eval()
    out.append(m(x))
    torch.nn.utils.parametrize.remove_parametrizations(m, "weight")
    return [*out, m(x), type(m).__name__, isinstance(m.weight, torch.nn.Parameter)]


@_double
def orthogonal_weights(torch):
    Linear, x = torch.nn.Linear, torch.ones(2, 4)
    wide = x[:, :3]
    out = [_trained(torch, lambda Q: Q.orthogonal(Linear(4, 4)), x), _trained(torch, lambda Q: Q.orthogonal(Linear(3, 5)), wide)]
    for kind in ("cayley", "matrix_exp", "householder"):
        out.append(_trained(torch, lambda Q: Q.orthogonal(Linear(4, 3), orthogonal_map=kind), x))
    out.append(_trained(torch, lambda Q: Q.orthogonal(Linear(4, 3), orthogonal_map="householder", use_trivialization=False), x))
    out.append(_trained(torch, lambda Q: Q.orthogonal(Linear(3, 5), use_trivialization=False), wide))
    out.append(_trained(torch, lambda Q: Q.orthogonal(Linear(4, 4), orthogonal_map="cayley", use_trivialization=False), x))
    return out


@_double
def normed_weights(torch):
    nn = torch.nn
    x, picture = torch.arange(6.0).view(2, 3) * 0.1, torch.arange(36.0).view(2, 2, 3, 3) * 0.01
    out = [_trained(torch, lambda Q: Q.weight_norm(nn.Linear(3, 2), dim=dim), x) for dim in (0, 1, None)]
    out.append(_trained(torch, lambda Q: Q.weight_norm(nn.Conv2d(2, 3, 2)), picture))
    out.append(_trained(torch, lambda Q: Q.spectral_norm(nn.Conv2d(2, 3, 2)), picture))
    out.append(_trained(torch, lambda Q: Q.spectral_norm(nn.ConvTranspose2d(2, 3, 2), n_power_iterations=3), picture))
    return out


def _parts(torch):
    class Skew(torch.nn.Module):
        def forward(self, X):
            return X.triu(1) - X.triu(1).mT

        def right_inverse(self, A):
            return A.triu(1)

    class Exponential(torch.nn.Module):
        def forward(self, A):
            return torch.matrix_exp(A)

    return Skew(), Exponential()


@_double
def parametrizations_in_a_row(torch):
    P = torch.nn.utils.parametrize
    skew, exponential = _parts(torch)
    torch.manual_seed(1)
    m = torch.nn.Linear(3, 3)
    P.register_parametrization(m, "weight", skew)
    first = m.weight
    with torch.no_grad():
        m.weight = torch.tensor([[0.0, 1.0, 2.0], [-1.0, 0.0, 3.0], [-2.0, -3.0, 0.0]])
    assigned = m.weight
    P.register_parametrization(m, "weight", exponential)
    with P.cached():
        once = m.weight is m.weight
    kind, both = P.type_before_parametrizations(m).__name__, m(torch.ones(1, 3))
    P.remove_parametrizations(m, "weight", leave_parametrized=False)
    return first, assigned, both, once, m.weight is m.weight, kind, P.is_parametrized(m), m.weight


def parametrized_weight_assigned_without_inverse(torch):
    m = torch.nn.Linear(3, 3)
    torch.nn.utils.parametrize.register_parametrization(m, "weight", _parts(torch)[1])
    m.weight = torch.eye(3)
    return m.weight


def parametrization_that_changes_the_shape(torch):
    class First(torch.nn.Module):
        def forward(self, X):
            return X[0]

    return torch.nn.utils.parametrize.register_parametrization(torch.nn.Linear(3, 3), "weight", First()).weight
