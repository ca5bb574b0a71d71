"""Copies of nests whose tensors are views of each other, modes of generators, names of groups."""

import copy


def views_in_a_copied_nest(torch):
    x = torch.zeros(2, 3)
    new = copy.deepcopy({"views": [x[0], x.t()], "whole": x})
    new["whole"] += 1
    new["views"][0][1] = 5
    return new, x


def views_without_their_base(torch):
    x = torch.zeros(2, 3)
    new = copy.deepcopy([x[0], x[:, 1]])
    new[0] += 1
    return new, x


def parameter_and_its_row(torch):
    m = torch.nn.Linear(2, 1)
    torch.nn.init.ones_(m.weight)
    new = copy.deepcopy({"row": m.weight.data[0], "model": m})
    new["row"][0] = 7
    optimizer = torch.optim.SGD([new["model"].weight], 1.0)
    new["model"].weight.sum().backward()
    optimizer.step()
    return new["model"].weight, new["row"], m.weight


def module_with_a_row_of_its_weight(torch):
    m = torch.nn.Linear(2, 1)
    torch.nn.init.ones_(m.weight)
    m.row = m.weight.data[0]
    new = copy.deepcopy(m)
    new.row[0] = 7
    m.weight.data.zero_()
    return new.weight, new.row, m.row


def generator_without_gradients(torch):
    @torch.no_grad()
    def values():
        sent = yield (torch.ones(1, requires_grad=True) * 2).requires_grad
        try:
            yield sent, torch.is_grad_enabled()
        except ValueError:
            yield "caught", torch.is_grad_enabled()
        return 5

    steps = values()
    found = [next(steps), torch.is_grad_enabled(), steps.send(3), steps.throw(ValueError), torch.is_grad_enabled()]
    try:
        next(steps)
    except StopIteration as end:
        found.append(end.value)
    return found


def decorated_by_set_grad_enabled(torch):
    @torch.set_grad_enabled(False)
    def enabled():
        return torch.is_grad_enabled()

    return enabled(), torch.is_grad_enabled()


def names_of_parameters_in_groups(torch):
    m = torch.nn.Linear(2, 1)
    one = torch.optim.AdamW(m.named_parameters(), 0.1)
    two = torch.optim.SGD([{"params": m.named_parameters(), "lr": 1.0}], 0.1)
    one.load_state_dict(one.state_dict())
    return one.param_groups[0]["param_names"], two.param_groups[0]["param_names"], one.state_dict()["param_groups"][0]["param_names"]


def flat_view_after_a_transposed_copy(torch):
    x = torch.zeros(2, 3)
    x.copy_(torch.arange(6.0).view(3, 2).t())
    x.view(6)[0] = 50
    x[...] = x.t().clone().t() + 1
    x.reshape(-1)[1] = 70
    return x, x.stride()


def functions_of_numpy(torch):
    import numpy as np

    x, w = torch.tensor([1.0, 4.0]), torch.ones(2, requires_grad=True)
    y = np.float64(3) * w
    y.sum().backward()
    root = np.sqrt(x)
    return root, isinstance(root, torch.Tensor), np.log1p(x), np.float32(2) * x, x * np.float64(2), w.grad, np.float64(2) > x[1]


def function_of_numpy_of_a_leaf(torch):
    import numpy as np

    return np.sqrt(torch.ones(2, requires_grad=True))


def retained_gradient_of_a_written_result(torch):
    w = torch.ones(2, requires_grad=True)
    y = w * 2
    y.retain_grad()
    y.mul_(3)
    y[0] = y[1] * 2
    y.sum().backward()
    return y.grad, w.grad


def flat_views_of_gradients(torch):
    a, b = torch.ones(2, 3, requires_grad=True), torch.ones(2, 3, requires_grad=True)
    x = torch.arange(6.0).view(3, 2)
    (x * a.t()).sum().backward()
    (b.sum(1) * torch.tensor([1.0, 2.0])).sum().backward()
    kept = a.grad
    a.grad.view(-1)[1] = 100
    b.grad.reshape(6)[3] = 9
    first = kept.clone(), b.grad.clone()
    (x * a.t()).sum().backward()
    optimizer = torch.optim.SGD([a, b], 0.5)
    optimizer.step()
    return first, kept, a, b, a.grad.stride()
