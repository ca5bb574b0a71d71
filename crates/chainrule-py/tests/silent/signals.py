"""Programs around spectra of pieces of a signal, and around distributions of mapped values."""

WINDOWS = ("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window")


def _double(program):
    def run(torch):
        torch.set_default_dtype(torch.float64)
        try:
            return program(torch)
        finally:
            torch.set_default_dtype(torch.float32)

    run.__module__ = program.__module__
    return run


@_double
def windows(torch):
    return [getattr(torch, name)(n, periodic) for name in WINDOWS for n in (0, 1, 7, 8) for periodic in (True, False)]


def _spectrum(torch, shape, n_fft, **more):
    torch.manual_seed(2)
    x = torch.randn(*shape, requires_grad=True)
    X = torch.stft(x, n_fft, return_complex=True, **more)
    pairs = torch.view_as_real(X)
    more.pop("pad_mode", None)
    back = torch.istft(X, n_fft, **more)
    (pairs**2).sum().backward(retain_graph=True)
    (back**3).sum().backward()
    return pairs, back, x.grad


@_double
def spectra(torch):
    window = torch.hann_window(9) + 0.1
    return [
        _spectrum(torch, (20,), 9, window=window),
        _spectrum(torch, (2, 20), 8, hop_length=3, normalized=True, onesided=False),
        _spectrum(torch, (20,), 9, win_length=5, window=window[:5], hop_length=1, pad_mode="constant", length=24),
        _spectrum(torch, (2, 21), 9, center=False, window=window, length=12),
        torch.randn(20).stft(8, return_complex=False),
    ]


@_double
def spectra_of_complex_signals(torch):
    torch.manual_seed(1)
    x = torch.complex(torch.randn(18), torch.randn(18))
    X = torch.stft(x, 6, window=torch.hann_window(6), return_complex=True)
    back = X.istft(6, window=torch.hann_window(6), onesided=False, return_complex=True)
    return torch.view_as_real(X), torch.view_as_real(back)


def windows_that_leave_gaps(torch):
    X = torch.stft(torch.ones(16), 4, hop_length=4, window=torch.hann_window(4), center=False, return_complex=True)
    return torch.istft(X, 4, hop_length=4, window=torch.hann_window(4), center=False)


def spectrum_without_its_kind(torch):
    return torch.stft(torch.ones(16), 4)


def _mapped(torch, transforms):
    D = torch.distributions
    mean = torch.tensor([0.1, 0.2, -0.3], requires_grad=True)
    d = D.TransformedDistribution(D.Normal(mean, torch.ones(3) * 0.5), transforms)
    y = d.rsample((2,))
    log = d.log_prob(y)
    log.sum().backward()
    return list(d.batch_shape), list(d.event_shape), y, log, mean.grad, d.sample()


@_double
def mapped_distributions(torch):
    D = torch.distributions
    torch.manual_seed(3)
    places, scales = torch.tensor([-1.0, 0.0, 2.0]), torch.tensor([2.0, 3.0, -1.0])
    return [
        _mapped(torch, [D.TanhTransform(cache_size=1)]),
        _mapped(torch, [D.AffineTransform(1.0, 2.0), D.ExpTransform()]),
        _mapped(torch, [D.SigmoidTransform(), D.AffineTransform(places, scales)]),
        _mapped(torch, [D.AffineTransform(torch.tensor([[0.0], [1.0]]), 1.5)]),
        _mapped(torch, [D.SoftplusTransform(), D.PowerTransform(torch.tensor(2.0))]),
        _mapped(torch, [D.IndependentTransform(D.SigmoidTransform(), 1)]),
        _mapped(torch, [D.AffineTransform(torch.zeros(3), scales, event_dim=1)]),
        _mapped(torch, [D.ComposeTransform([D.ExpTransform(), D.PowerTransform(0.5)]), D.ExpTransform().inv]),
    ]


@_double
def probabilities_of_mapped_values(torch):
    D = torch.distributions
    d = D.TransformedDistribution(D.Normal(torch.zeros(2), torch.tensor([1.0, 2.0])), [D.AffineTransform(1.0, -2.0)])
    p = torch.tensor([0.2, 0.7])
    wide = d.expand((3, 2))
    return d.icdf(p), d.cdf(d.icdf(p)), wide.log_prob(torch.ones(3, 2))


@_double
def mixtures(torch):
    D = torch.distributions
    torch.manual_seed(5)
    weights = torch.tensor([0.2, 0.3, 0.5], requires_grad=True)
    m = D.MixtureSameFamily(D.Categorical(weights), D.Independent(D.Normal(torch.randn(3, 2), torch.rand(3, 2) + 0.1), 1))
    x = m.sample((4,))
    m.log_prob(x).sum().backward()
    rows = D.MixtureSameFamily(D.Categorical(logits=torch.randn(4, 3)), D.Normal(torch.randn(4, 3), 1.0))
    y = rows.sample((2,))
    return x, m.log_prob(x), weights.grad, m.mean, m.variance, y, rows.log_prob(y), rows.cdf(y), rows.mean, rows.variance
