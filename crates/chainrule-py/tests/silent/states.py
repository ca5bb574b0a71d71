"""Programs about modules, parameters and optimizers: what is cast, copied, tied, set later or given
twice.
"""

import copy
import io
import math
import pickle


def _checkpoint(torch):
    import importlib

    if torch.__name__ == "torch":
        found = importlib.import_module("torch.utils.checkpoint").checkpoint
        return lambda f, *a, **k: found(f, *a, use_reentrant=False, **k)
    return torch.checkpoint


def _step(m, opt, x):
    opt.zero_grad()
    loss = (m(x) ** 2).sum()
    loss.backward()
    opt.step()
    return loss


def double_after_optimizer(torch):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    opt = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
    w = m.weight
    m.double()
    for _ in range(2):
        _step(m, opt, torch.ones(1, 2, dtype=torch.float64))
    return m.weight, w is m.weight, m.weight.dtype == torch.float64


def tied_then_double(torch):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False))
    m[1].weight = m[0].weight
    m.double()
    (m(torch.ones(1, 2, dtype=torch.float64)) ** 2).sum().backward()
    return m[0].weight is m[1].weight, len(list(m.parameters())), m[0].weight.grad


def tied_then_deepcopy(torch):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False))
    m[1].weight = m[0].weight
    c = copy.deepcopy(m)
    opt = torch.optim.SGD(c.parameters(), lr=0.1)
    _step(c, opt, torch.ones(1, 2))
    return c[0].weight is c[1].weight, len(list(c.parameters())), c[0].weight, m[0].weight


def tied_then_pickled(torch):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False))
    m[1].weight = m[0].weight
    c = pickle.loads(pickle.dumps(m))
    return c[0].weight is c[1].weight, len(list(c.parameters())), [n for n, _ in c.named_parameters()]


def copied_parameter_is_parameter(torch):
    p = torch.nn.Parameter(torch.ones(2))
    m = torch.nn.Module()
    m.a = copy.deepcopy(p)
    m.b = pickle.loads(pickle.dumps(p))
    m.c = torch.nn.Parameter(p.detach().clone(), requires_grad=False)
    return [n for n, _ in m.named_parameters()], m.a.requires_grad, m.c.requires_grad, m.a


def deepcopied_module_trains_apart(torch):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    c = copy.deepcopy(m)
    _step(c, torch.optim.SGD(c.parameters(), lr=0.1), torch.ones(1, 2))
    return m.weight, c.weight, c.weight.requires_grad


def weight_decay_changed(torch):
    w = torch.ones(2, requires_grad=True)
    opt = torch.optim.SGD([w], lr=0.1)
    for decay in (0.0, 0.5):
        opt.param_groups[0]["weight_decay"] = decay
        opt.zero_grad()
        w.sum().backward()
        opt.step()
    return w


def momentum_changed(torch):
    w = torch.ones(2, requires_grad=True)
    opt = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    for i in range(4):
        if i == 2:
            opt.param_groups[0]["momentum"] = 0.5
        opt.zero_grad()
        (w**2).sum().backward()
        opt.step()
    return w


def betas_changed(torch):
    w = torch.ones(2, requires_grad=True)
    opt = torch.optim.Adam([w], lr=0.1)
    for i in range(4):
        if i == 2:
            opt.param_groups[0]["betas"] = (0.5, 0.9)
            opt.param_groups[0]["eps"] = 0.1
        opt.zero_grad()
        (w**2).sum().backward()
        opt.step()
    return w


def frozen_later(torch):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    opt = torch.optim.SGD(m.parameters(), lr=0.1)
    x = torch.ones(1, 2)
    _step(m, opt, x)
    m.bias.requires_grad_(False)
    _step(m, opt, x)
    m.bias.requires_grad = True
    _step(m, opt, x)
    return m.weight, m.bias


def chained_schedulers(torch):
    w = torch.ones(1, requires_grad=True)
    opt = torch.optim.SGD([w], lr=1.0)
    a = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.9)
    b = torch.optim.lr_scheduler.MultiStepLR(opt, milestones=[2, 4], gamma=0.1)
    rates = []
    for _ in range(6):
        w.sum().backward()
        opt.step()
        rates.append(opt.param_groups[0]["lr"])
        a.step()
        b.step()
    return rates, a.get_last_lr()


def chained_warmup_cosine(torch):
    w = torch.ones(1, requires_grad=True)
    opt = torch.optim.SGD([w], lr=0.5)
    s = torch.optim.lr_scheduler
    all_of = [s.LinearLR(opt, start_factor=0.1, total_iters=3), s.CosineAnnealingLR(opt, T_max=8), s.StepLR(opt, 2, gamma=0.5)]
    rates = []
    for _ in range(7):
        w.sum().backward()
        opt.step()
        rates.append(opt.param_groups[0]["lr"])
        for one in all_of:
            one.step()
    return rates


def rate_set_by_hand_under_scheduler(torch):
    w = torch.ones(1, requires_grad=True)
    opt = torch.optim.SGD([w], lr=1.0)
    s = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5)
    rates = []
    for i in range(4):
        if i == 2:
            opt.param_groups[0]["lr"] = 3.0
        w.sum().backward()
        opt.step()
        rates.append(opt.param_groups[0]["lr"])
        s.step()
    return rates


def dropout_in_checkpoint(torch):
    torch.manual_seed(0)
    x = torch.ones(64, requires_grad=True)
    drop = torch.nn.Dropout(0.5)
    y = _checkpoint(torch)(lambda t: drop(t) * 2, x)
    y.sum().backward()
    return bool((x.grad == y).all()), bool(((y == 0) | (y == 4)).all()), y, torch.rand(2)


def checkpoint_of_layer(torch):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 2)
    x = torch.ones(1, 2)
    _checkpoint(torch)(m, x).sum().backward()
    x2 = torch.ones(1, 2, requires_grad=True)
    _checkpoint(torch)(m, x2).sum().backward()
    return m.weight.grad, m.bias.grad, x2.grad


def checkpoint_of_closure(torch):
    torch.manual_seed(0)
    w = torch.randn(3, requires_grad=True)
    v = torch.randn(3, requires_grad=True)
    h = w * 2

    def f(x):
        return (x * h).tanh() * v

    _checkpoint(torch)(f, v).sum().backward()
    return w.grad, v.grad


def checkpoint_with_words(torch):
    w = torch.ones(2, requires_grad=True)

    def f(x, scale=1.0):
        return x * w * scale

    y = _checkpoint(torch)(f, torch.ones(2) * 3, scale=2.0)
    y.sum().backward()
    return y, w.grad


def checkpoint_gives_pair(torch):
    w = torch.ones(2, requires_grad=True)
    a, b = _checkpoint(torch)(lambda x: (x * 2, x.exp()), w)
    (a.sum() + 3 * b.sum()).backward()
    return w.grad


def weight_overwritten_by_product(torch):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    m.weight = m.weight * 0.5
    return m(torch.ones(1, 2))


def weight_overwritten_by_parameter(torch):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    opt = torch.optim.SGD(m.parameters(), lr=0.1)
    m.weight = torch.nn.Parameter(m.weight * 0.5)
    _step(m, opt, torch.ones(1, 2))
    return m.weight, m.bias, [n for n, _ in m.named_parameters()]


def parameter_of_parameter(torch):
    p = torch.nn.Parameter(torch.ones(2))
    q = torch.nn.Parameter(p)
    with torch.no_grad():
        q[0] = 5
    return p, q, q.is_leaf


def parameter_of_tensor_shares(torch):
    t = torch.zeros(2)
    p = torch.nn.Parameter(t)
    t[0] = 3
    with torch.no_grad():
        p[1] = 4
    return t, p


def same_parameter_twice(torch):
    w = torch.ones(2, requires_grad=True)
    opt = torch.optim.SGD([w, w], lr=0.1)
    w.sum().backward()
    opt.step()
    return w


def same_parameter_in_two_groups(torch):
    w = torch.ones(2, requires_grad=True)
    return torch.optim.SGD([{"params": [w]}, {"params": [w]}], lr=0.1)


def dtype_float_is_single(torch):
    return [str(torch.zeros(2, dtype=d).dtype).split(".")[-1] for d in (int, bool)], str(torch.ones(1, dtype=torch.float).dtype).split(".")[-1]


def dtype_python_float(torch):
    x = torch.zeros(2, dtype=float)
    y = torch.tensor([1, 2]).to(float)
    return str(x.dtype).split(".")[-1], str(y.dtype).split(".")[-1], x + 1 / 3


def tensor_of_number(torch):
    return list(torch.Tensor(3).shape), list(torch.Tensor(2, 3).shape)


def tensor_of_list(torch):
    return torch.Tensor([3]), torch.Tensor([[1, 2], [3, 4]]), list(torch.Tensor().shape), torch.Tensor((1, 2))


def module_to_cuda(torch):
    m = torch.nn.Linear(2, 1)
    m.to("cuda")
    return True


def tensor_to_cuda(torch):
    x = torch.zeros(2)
    x.to("cuda:0")
    return True


def tensor_cuda_method(torch):
    torch.zeros(2).cuda()
    return True


def module_cuda_method(torch):
    torch.nn.Linear(1, 1).cuda()
    return True


def device_argument(torch):
    return torch.zeros(2, device="cuda")


def relu_in_place(torch):
    x = torch.tensor([-1.0, 2.0])
    y = torch.nn.functional.relu(x, inplace=True)
    a = torch.tensor([-1.0, 2.0])
    torch.nn.ReLU(inplace=True)(a)
    b = torch.tensor([-3.0, 2.0])
    b.relu_()
    c = torch.tensor([-3.0, 2.0])
    torch.nn.LeakyReLU(0.1, inplace=True)(c)
    return x, y is x, a, b, c


def activations_in_place(torch):
    out = []
    for make in (lambda: torch.nn.ELU(inplace=True), lambda: torch.nn.SiLU(inplace=True), lambda: torch.nn.Hardtanh(inplace=True), lambda: torch.nn.ReLU6(inplace=True), lambda: torch.nn.SELU(inplace=True)):
        x = torch.tensor([-1.5, 8.0, 0.5])
        make()(x)
        out.append(x)
    return out


def relu_in_place_gradient(torch):
    w = torch.tensor([-1.0, 2.0], requires_grad=True)
    h = w * 3
    r = torch.nn.ReLU(inplace=True)(h)
    (h * r).sum().backward()
    return w.grad, h


def functional_in_place_on_residual(torch):
    x = torch.tensor([-1.0, 2.0])
    y = torch.nn.functional.relu(x, inplace=True) + x
    return y


def dropout_in_place(torch):
    torch.manual_seed(0)
    x = torch.ones(8)
    y = torch.nn.Dropout(0.5, inplace=True)(x)
    return x, y is x


def attention_dropout_draws_the_same(torch):
    attention = torch.nn.functional.scaled_dot_product_attention
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 2, 5, 8, requires_grad=True) for _ in range(3))
    out = [attention(q, k, v, dropout_p=0.3), attention(q, k, v, is_causal=True, dropout_p=0.5)]
    out.append(attention(q, k, v, attn_mask=torch.ones(5, 5, dtype=torch.bool).tril(), dropout_p=0.2))
    out.append(attention(q, k, v, attn_mask=torch.ones(5, 5) * 0.5, dropout_p=0.2, scale=0.3))
    sum(o.sum() for o in out).backward()
    return out, q.grad, v.grad, torch.rand(3)


def batch_norm_statistics_copied(torch):
    torch.manual_seed(0)
    m = copy.deepcopy(torch.nn.BatchNorm1d(2))
    m(torch.randn(4, 2))
    d = torch.nn.BatchNorm1d(2).double()
    d(torch.randn(4, 2).double())
    p = pickle.loads(pickle.dumps(torch.nn.BatchNorm1d(2)))
    p(torch.randn(4, 2))
    return m.running_mean, d.running_var, p.running_mean, int(p.num_batches_tracked), [n for n, _ in p.named_buffers()]


def buffer_seen_before_update(torch):
    torch.manual_seed(0)
    m = torch.nn.BatchNorm1d(2)
    seen = m.running_mean
    m(torch.randn(4, 2))
    return seen, m.running_mean


def optimizer_keeps_parameter_after_set_data(torch):
    w = torch.ones(2, requires_grad=True)
    opt = torch.optim.SGD([w], lr=0.5)
    w.data = torch.full((2,), 4.0)
    w.sum().backward()
    opt.step()
    return w


def optimizer_state_cast(torch):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    opt = torch.optim.Adam(m.parameters(), lr=0.1)
    _step(m, opt, torch.ones(1, 2))
    m.double()
    _step(m, opt, torch.ones(1, 2).double())
    return m.weight


def state_dict_is_a_reference(torch):
    m = torch.nn.Linear(1, 1)
    best = m.state_dict()
    with torch.no_grad():
        m.weight.fill_(5)
    m.load_state_dict(best)
    return m.weight


def load_into_requires_grad(torch):
    a, b = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    opt = torch.optim.SGD(a.parameters(), lr=0.1)
    a.load_state_dict(b.state_dict())
    _step(a, opt, torch.ones(1, 2))
    return bool((a.weight == b.weight).any()), a.weight.requires_grad


def requires_grad_on_existing(torch):
    x = torch.ones(2)
    y = x
    x.requires_grad_()
    (y * 2).sum().backward()
    return x.grad, y.grad


def params_generator_used_up(torch):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1)
    params = m.parameters()
    a = torch.optim.SGD(params, lr=0.1)
    return torch.optim.SGD(params, lr=0.1), a


def del_parameter(torch):
    m = torch.nn.Linear(2, 1)
    del m.bias
    m.bias = None
    return [n for n, _ in m.named_parameters()], list(m(torch.ones(1, 2)).shape)


def parameter_set_none(torch):
    m = torch.nn.Linear(2, 1)
    m.bias = None
    return [n for n, _ in m.named_parameters()], list(m(torch.ones(1, 2)).shape), list(m.state_dict())


def plain_tensor_for_parameter(torch):
    m = torch.nn.Linear(2, 1)
    m.weight = torch.zeros(1, 2)
    return m.weight


def parameter_list_written(torch):
    ps = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(2)) for _ in range(2)])
    ps[0].data.mul_(3)
    with torch.no_grad():
        ps[1][0] = 9
    return ps[0], ps[1]


def in_place_on_saved_value(torch):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    y = w.exp()
    z = y * 1
    z += 1
    z.sum().backward()
    return w.grad


def retain_and_accumulate(torch):
    w = torch.ones(2, requires_grad=True)
    y = (w**2).sum()
    y.backward(retain_graph=True)
    y.backward()
    return w.grad


def clip_in_place(torch):
    w = torch.ones(2, requires_grad=True)
    (w * 10).sum().backward()
    g = w.grad
    total = torch.nn.utils.clip_grad_norm_([w], 1.0)
    return w.grad, g, float(total)


def init_in_place(torch):
    torch.manual_seed(0)
    m = torch.nn.Linear(3, 2)
    w = m.weight
    torch.nn.init.xavier_uniform_(m.weight)
    torch.nn.init.constant_(m.bias, 2)
    torch.nn.init.zeros_(m.weight[0].data)
    return w, m.bias


def hook_on_view(torch):
    w = torch.ones(2, 2, requires_grad=True)
    seen = []
    r = w[0]
    r.register_hook(lambda g: seen.append(float(g.sum())))
    (r * 3).sum().backward()
    return seen, w.grad


def numbers_as_arguments(torch):
    x = torch.zeros(2)
    x.fill_(math.pi)
    x.add_(1, alpha=2)
    x.addcmul_(torch.ones(2), torch.ones(2), value=3)
    x.addcdiv_(torch.ones(2), torch.ones(2) * 2, value=-1)
    return x


def saved_file_is_a_snapshot(torch):
    m = torch.nn.Linear(1, 1)
    state = pickle.loads(pickle.dumps({k: v for k, v in m.state_dict().items()}))
    with torch.no_grad():
        m.weight += 1
    return (m.weight - state["weight"]), io is not None


def retained_gradient_in_place(torch):
    w = torch.ones(2, requires_grad=True)
    h = w * 2
    h.retain_grad()
    (h * h).sum().backward()
    g = h.grad
    h.grad.mul_(10)
    return h.grad, g, w.grad


def module_attribute_tensor(torch):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.ones(2)

    m = M()
    m.scale[0] = 4
    m.scale.data[1] = 5
    m.double()
    return m.scale, str(m.scale.dtype).split(".")[-1], list(m.state_dict())
