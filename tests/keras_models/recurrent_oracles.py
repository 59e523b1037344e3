"""Recurrent pieces and their regularisers in NumPy float64.

maxout, noisy tanh, zoneout, dropout, scheduled sampling.

Written from the papers' equations alone; style, array layout and cells are those of `oracles.py`.
"""

import math

import numpy as np

from tests.keras_models.oracles import affine, gru, lstm, sigmoid, sigmoids

# Activations.


def maxout(vector, pieces=2):
    """Goodfellow 2013, neighbours being the pieces of a unit: t_j = max of r at pieces j ..

    pieces (j + 1) - 1.

    SeqCopyNet's form is `pieces=2`: the largest of every two numbers of the readout.

    Args:
        vector: r `[pieces * size]`.

    Returns:
        t `[size]`.
    """
    if len(vector) % pieces:
        raise ValueError(f"{len(vector)} numbers are no whole number of groups of {pieces}")
    return np.array(
        [
            max(float(vector[pieces * j + k]) for k in range(pieces))
            for j in range(len(vector) // pieces)
        ]
    )


def sign(x):
    return (x > 0) - (x < 0)


def relu(vector):
    return np.array([max(float(x), 0.0) for x in vector])


def noisy_tanh(vector, alpha, c, p, noise=None):
    """Gulcehre 2016b ("Noisy activation functions"), noise at the output, half-normal, with learned
    p.

        h(x) = clip(x, -1, 1), u(x) = x, Delta = h - u
        sigma(x) = c (sigmoid(p Delta) - 1/2)^2,  d(x) = -sgn(x) sgn(1 - alpha)
        phi(x) = alpha h(x) + (1 - alpha) u(x) + d(x) sigma(x) e
        e = |N(0, 1)| in training, E[e] = sqrt(2 / pi) afterwards

    With sgn(0) = 0, alpha = 1 has no noise, as the equation says; the authors' program takes sgn(1
    - alpha) = 1 there.

    Args:
        p: number, or one for each element.
        noise: e `[size]`, not negative; None takes its expectation.
    """
    p = np.broadcast_to(np.asarray(p, "float64"), (len(vector),))
    result = []
    for i, x in enumerate(vector):
        x = float(x)
        hard = min(max(x, -1.0), 1.0)
        sigma = c * (sigmoid(p[i] * (hard - x)) - 0.5) ** 2
        e = math.sqrt(2.0 / math.pi) if noise is None else float(noise[i])
        result.append(alpha * hard + (1.0 - alpha) * x - sign(x) * sign(1.0 - alpha) * sigma * e)
    return np.array(result)


# Zoneout.


def zoned(old, new, keep):
    """keep * old + (1 - keep) * new.

    `keep` is zoneout's rate (inference) or a vector of 0 and 1 (training, 1 keeps).
    """
    keep = np.broadcast_to(np.asarray(keep, "float64"), (len(old),))
    return np.array(
        [float(k) * float(o) + (1.0 - float(k)) * float(n) for k, o, n in zip(keep, old, new)]
    )


def zoneout_lstm(x, h, c, kernel, recurrent_kernel, bias, keep_output, keep_cell):
    """Krueger 2016: one LSTM step some of whose units stay as they were.

    c_t = z_c c_{t-1} + (1 - z_c) (f c_{t-1} + i g)
    h_t = z_h h_{t-1} + (1 - z_h) o tanh(f c_{t-1} + i g)

    The tanh sees the cell before zoneout. At inference masks give way to their expectations, the
    rates.

    Args:
        keep_output, keep_cell: z_h and z_c: the rates, or masks `[units]` in training.

    Returns:
        h_t, c_t.
    """
    new_h, new_c = lstm(x, h, c, kernel, recurrent_kernel, bias)
    return zoned(h, new_h, keep_output), zoned(c, new_c, keep_cell)


def zoneout_gru(x, h, kernel, recurrent_kernel, bias, keep):
    """Krueger 2016 for a GRU: h_t = z h_{t-1} + (1 - z) GRU(x_t, h_{t-1})."""
    return zoned(h, gru(x, h, kernel, recurrent_kernel, bias), keep)


# Variational dropout.


def dropout_mask(kept, rate):
    """Inverted dropout's mask: 1 / (1 - rate) where kept, else 0."""
    return np.array([1.0 / (1.0 - rate) if k else 0.0 for k in kept])


def variational_lstm(inputs, h, c, kernel, recurrent_kernel, bias, input_mask, state_mask):
    """Gal & Ghahramani 2016, tied weights: an LSTM with the same two masks at every step.

    gates_t = affine(x_t * z_x) + affine(h_{t-1} * z_h); all four gates see the same masked vectors.
    The masks drop rows of the kernels, so they touch neither the cell c nor what the layer outputs.
    At inference both masks are ones.

    Args:
        inputs: `[length, inputs]`.
        input_mask, state_mask: z_x `[inputs]` and z_h `[units]`, drawn once a sequence; see
            `dropout_mask`.

    Returns:
        outputs `[length, units]`, the last h, the last c.
    """
    outputs = []
    for x in inputs:
        h, c = lstm(x * input_mask, h * state_mask, c, kernel, recurrent_kernel, bias)
        outputs.append(h)
    return np.array(outputs), h, c


def variational_gru(inputs, h, kernel, recurrent_kernel, bias, input_mask, state_mask):
    """As `variational_lstm`, for the GRU of `oracles.gru`.

    h_t = z h_{t-1} + (1 - z) n, with z, r and n from the masked x_t and h_{t-1}. The h_{t-1} that
    is carried over is not masked, since no kernel multiplies it; Keras' own `recurrent_dropout`
    masks it too.

    Returns:
        outputs `[length, units]`, the last h.
    """
    size, outputs = len(h), []
    for x in inputs:
        outside = affine(x * input_mask, kernel, bias[0])
        inside = affine(h * state_mask, recurrent_kernel, bias[1])
        z = sigmoids(outside[:size] + inside[:size])
        r = sigmoids(outside[size : 2 * size] + inside[size : 2 * size])
        n = np.tanh(outside[2 * size :] + r * inside[2 * size :])
        h = z * h + (1.0 - z) * n
        outputs.append(h)
    return np.array(outputs), h


# Scheduled sampling: probability of feeding the reference's word at training step i.


def linear_decay(i, k, c, least):
    """Bengio 2015 section 2.4: max(least, k - c i), 0 <= least < 1."""
    return max(float(least), float(k) - float(c) * i)


def exponential_decay(i, k):
    """Bengio 2015 section 2.4: k^i, k < 1."""
    return float(k) ** i


def inverse_sigmoid_decay(i, k):
    """Bengio 2015 section 2.4: k / (k + exp(i / k)), k >= 1;
    written k exp(-i / k) / (k exp(-i / k) + 1), which cannot overflow.
    """
    scaled = float(k) * math.exp(-i / float(k))
    return scaled / (scaled + 1.0)
