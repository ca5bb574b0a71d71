"""Arrays of NumPy beside tensors that are written: what the array shows afterwards."""

import numpy as np


def array_of_a_tensor_added_to(torch):
    x = torch.ones(3)
    a = x.numpy()
    x += 1
    x[1] = 5
    return a.tolist(), x


def parts_of_an_array(torch):
    x = torch.zeros(2, 3)
    flat = x.view(-1)
    part, turned, row = flat[2:].numpy(), x.t().numpy(), x.numpy()[1]
    x[1] = 4
    flat[2] = 7
    x.mul_(2)
    return part.tolist(), turned.tolist(), row.tolist()


def array_of_a_detached_view(torch):
    x = torch.zeros(4)
    d = x.detach()
    a = d[1:].numpy()
    x[2] = 5
    d[3] = 6
    return a.tolist(), x


def gradient_added_to(torch):
    w = torch.ones(2, requires_grad=True)
    (w * 2).sum().backward()
    a = w.grad.numpy()
    (w * 3).sum().backward()
    b = a.tolist()
    torch.nn.utils.clip_grad_norm_([w], 1.0)
    return b, a.tolist()


def gradient_set_to_zeros(torch):
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], 0.1)
    (w * 2).sum().backward()
    a, old = w.grad.numpy(), w.grad
    optimizer.zero_grad(set_to_none=False)
    b = a.tolist()
    optimizer.zero_grad()
    (w * 3).sum().backward()
    return b, a.tolist(), old, w.grad


def parameter_of_native_and_written_steps(torch):
    w = torch.ones(2, requires_grad=True)
    a, found = w.detach().numpy(), []
    for kind in ("SGD", "Adamax"):
        optimizer = getattr(torch.optim, kind)([w], 0.1)
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
        found.append(a.tolist())
    w.data.copy_(torch.tensor([7.0, 8.0]))
    return found, a.tolist()


def states_loaded_and_counted(torch):
    m = torch.nn.BatchNorm1d(2)
    mean, weight = m.running_mean.numpy(), m.weight.detach().numpy()
    m(torch.arange(6.0).view(3, 2))
    first = mean.tolist()
    m.load_state_dict({k: v * 0 + 3 for k, v in m.state_dict().items()})
    return first, mean.tolist(), weight.tolist()


def compiled_steps_shown(torch, compile):
    w, state = torch.nn.Parameter(torch.ones(2)), torch.zeros(2)
    optimizer = torch.optim.SGD([w], 0.1)
    a, b = w.detach().numpy(), state.numpy()

    @compile
    def f(x):
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        state.add_(x)

    f(torch.ones(2))
    first = a.tolist(), b.tolist()
    f(torch.ones(2))
    return first, a.tolist(), b.tolist()


def rollout_of_values(torch):
    values, found = torch.zeros(4, 2), []
    for it in range(3):
        for step in range(4):
            values[step] = torch.arange(2.0) + step * it
        predicted = values.reshape(-1).cpu().numpy()
        found.append(float(predicted.var()))
    return found


def arrays_kept_in_a_list(torch):
    x, w, kept = torch.zeros(2), torch.ones(2, requires_grad=True), []
    optimizer = torch.optim.SGD([w], 0.1)
    for _ in range(3):
        x += 1
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
        kept += [x.numpy(), w.detach().numpy()]
    return [a.tolist() for a in kept]


def other_memory_for_a_shown_tensor(torch):
    x = torch.zeros(3)
    a, view = x.numpy(), x[:2]
    x.data = torch.ones(3)
    x += 1
    view += 4
    return a.tolist(), x


def leaf_made_of_a_shown_tensor(torch):
    x = torch.ones(2)
    a = x.numpy()
    p = x.detach().requires_grad_()
    optimizer = torch.optim.SGD([p], 0.5)
    p.sum().backward()
    optimizer.step()
    b = a.tolist()
    x.mul_(3)
    return b, a.tolist(), p


def array_beside_a_tape(torch):
    x, w = torch.ones(3), torch.ones(3, requires_grad=True)
    a = x.numpy()
    y = (w * x.clone()).sum()
    x.add_(1)
    y.backward()
    return a.tolist(), w.grad


def large_array_written(torch):
    x = torch.zeros(40000)
    a = x.numpy()
    x += 1
    return float(a.sum())


def array_of_a_foreign_array(torch):
    a = np.zeros(4)
    b = torch.from_numpy(a)[1:].numpy()
    a[2] = 5
    return b.tolist()


def array_of_a_tensor_written(torch):
    x = torch.zeros(3)
    a = x.numpy()
    a[0] = 5
    return x


def lists_of_tensors_written(torch):
    a, b = [torch.zeros(2), torch.zeros(4)[1:]], [torch.ones(2), torch.ones(3)]
    base = a[1].view(-1)
    torch._foreach_add_(a, b, alpha=0.5)
    torch._foreach_mul_(a, [2.0, 3.0])
    torch._foreach_addcmul_(a, b, b, value=2)
    found = [a[0].clone(), a[1].clone(), base, torch._foreach_norm(b), torch._foreach_sub(a, b)]
    torch._foreach_copy_(a, b)
    torch._foreach_lerp_(a, [x * 3 for x in b], 0.5)
    return found, a, base


def parts_of_complex_numbers_assigned(torch):
    z = torch.view_as_complex(torch.zeros(3, 2))
    z.imag += 1
    z.real = torch.tensor([1.0, 2.0, 3.0])
    z.real[1] = 5
    return torch.view_as_real(z)
