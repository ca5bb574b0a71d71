"""Groups of parameters that are edited by hand while an optimizer steps them: what is remembered of
a parameter goes with it.
"""


def _followed(torch, compile, kind, edit, steps=9, **settings):
    """Three parameters over some steps, with the edit before each, and whose state is known."""
    a, b, c = (torch.nn.Parameter(torch.full((2,), float(i + 1))) for i in range(3))
    o = getattr(torch.optim, kind)([{"params": [a], "lr": 0.1}, {"params": [b], "lr": 0.05}], lr=0.01, **settings)

    @compile
    def step():
        o.zero_grad()
        ((a + b + c) ** 2).sum().backward()
        o.step()

    out = []
    for i in range(steps):
        edit(torch, i, o, a, b, c)
        step()
        out.append([p[0].item() for p in (a, b, c)])
    return out, sorted({id(a): "a", id(b): "b", id(c): "c"}[id(p)] for p in o.state)


def _of_all(torch, compile, edit):
    kinds = {"SGD": {"momentum": 0.9}, "Adam": {}, "AdamW": {"amsgrad": True}, "RMSprop": {"momentum": 0.5}, "Adagrad": {}, "NAdam": {}}
    return [_followed(torch, compile, kind, edit, **settings) for kind, settings in kinds.items()]


def groups_in_another_order(torch, compile):
    def edit(torch, i, o, a, b, c):
        if i in (2, 5):
            o.param_groups.reverse()

    return _of_all(torch, compile, edit)


def parameters_moved_between_groups(torch, compile):
    def edit(torch, i, o, a, b, c):
        if i == 3:
            o.param_groups[0]["params"].append(o.param_groups[1]["params"].pop())
        if i == 6:
            o.param_groups[1]["params"].append(o.param_groups[0]["params"].pop(0))

    return _of_all(torch, compile, edit)


def group_taken_out_and_put_back_behind(torch, compile):
    kept = []

    def edit(torch, i, o, a, b, c):
        if i == 2:
            kept.append(o.param_groups.pop(0))
        if i == 5:
            o.param_groups.append(kept.pop())

    return _of_all(torch, compile, edit)


def group_appended_to_the_list(torch, compile):
    def edit(torch, i, o, a, b, c):
        if i == 2:
            o.param_groups.append({**o.param_groups[0], "params": [c]})

    return _of_all(torch, compile, edit)


def list_of_groups_replaced(torch, compile):
    def edit(torch, i, o, a, b, c):
        if i == 2:
            o.param_groups = [{**o.param_groups[1], "params": [c, b, a]}]
        if i == 5:
            o.param_groups = [{**o.param_groups[0], "params": [a, c]}]
        if i == 7:
            o.param_groups[0]["params"] = [b, a]

    return _of_all(torch, compile, edit)


def groups_cleared_and_added_again(torch, compile):
    def edit(torch, i, o, a, b, c):
        if i == 2:
            o.param_groups.clear()
        if i == 4:
            o.add_param_group({"params": [b, c]})

    return _of_all(torch, compile, edit)


def states_of_parameters_dropped(torch, compile):
    def edit(torch, i, o, a, b, c):
        if i == 3:
            o.state.pop(a)
        if i == 5:
            o.state.clear()
        if i == 7:
            del o.state[b]

    return _of_all(torch, compile, edit)


def counts_of_states_set_back(torch, compile):
    """A state of zeros and a count of 0 is a fresh one."""
    def edit(torch, i, o, a, b, c):
        if i in (3, 6):
            state = o.state[(a, b)[i == 6]]
            for name, value in state.items():
                if isinstance(value, torch.Tensor):
                    state[name] = torch.zeros_like(value)

    return _followed(torch, compile, "Adam", edit), _followed(torch, compile, "RMSprop", edit)


def state_written_after_the_groups_changed(torch, compile):
    def edit(torch, i, o, a, b, c):
        if i == 3:
            o.param_groups.reverse()
            o.state[a]["exp_avg"].mul_(3)
        if i == 5:
            o.param_groups.pop()
            o.state[b]["exp_avg"].zero_()

    return _followed(torch, compile, "Adam", edit), _followed(torch, compile, "NAdam", edit)
