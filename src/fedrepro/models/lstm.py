"""A layer of long short-term memory (Hochreiter and Schmidhuber, Neural Computation 1997) as in torch, with one bias per gate.

It is written in the products and functions of `fedrepro.models`, with its gradient in closed form. So it takes weights with a
leading client axis, which torch's own cannot, and its bits are those of portable arithmetic: torch uses oneDNN's, which has
other bits with AVX-512 than with AVX2 (measured).

Measured on one core, a step on 10 windows of 80 characters: with 64 units 6 ms, torch's own 1.6, and torch's without oneDNN 10;
with two layers of 256 units 50 ms (85 if AVX2 is the widest), torch's 37 and 84. There clients side by side take two to five
times as long as one after the other.
"""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fedrepro.models import kernels, ops


def lstm(x: Tensor, into: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Hidden states [..., B, T, H] for sequences x [..., B, T, F], starting from a state of zeros.

    into [..., 4H, F], weight [..., 4H, H] of the hidden state, bias [..., 4H]; rows by gate: input, forget, output, candidate.
    The recurrence has the type of the weights, also if products elsewhere are rounded.
    """
    clients, (batch, steps) = x.shape[:-3], x.shape[-3:-1]
    z = ops.linear(x.flatten(-3, -2), into, bias).to(weight.dtype)
    return _Recurrence.apply(z.view(*clients, batch, steps, -1), weight)  # type: ignore[return-value]


def _product(a: Tensor, b: Tensor) -> Tensor:
    return kernels.product(a, b) if a.dim() == 2 else torch.bmm(a, b)


class _Recurrence(torch.autograd.Function):
    """Hidden states [..., B, T, H] from the inputs' part of the gates, z [..., B, T, 4H], and the weights [..., 4H, H]."""

    @staticmethod
    def forward(ctx, z: Tensor, weight: Tensor) -> Tensor:
        width, turned_weight = weight.shape[-1], weight.mT
        h = c = z.new_zeros((*z.shape[:-2], width))
        needs_grad, states = any(ctx.needs_input_grad), []
        gates = torch.empty_like(z) if needs_grad else z[..., :0]
        with torch.autocast(z.device.type, enabled=False):
            for z_t, out_t in zip(z.unbind(-2), gates.unbind(-2), strict=True):
                gates_t = _product(h, turned_weight)
                gates_t = torch.add(gates_t, z_t, out=out_t if needs_grad else gates_t)
                gates_t[..., : 3 * width].sigmoid_()
                gates_t[..., 3 * width :].tanh_()
                i, f, o, g = gates_t.split(width, -1)
                c = (f * c).addcmul_(i, g)
                tanh_c = c.tanh()
                h = o * tanh_c
                states.append((h, c, tanh_c) if needs_grad else (h,))
        h, *saved_states = (torch.stack(tensors, -2) for tensors in zip(*states, strict=True))
        ctx.save_for_backward(weight, gates, h, *saved_states)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx, d_h: Tensor):  # type: ignore[override]
        weight, gates, h, cells, tanh_c = ctx.saved_tensors
        width = weight.shape[-1]
        previous = lambda states: torch.cat([torch.zeros_like(states[..., :1, :]), states[..., :-1, :]], -2)  # noqa: E731
        i, f, o, g = gates.split(width, -1)
        # Computed for all times at once, since it needs no gradient: d gates = (d c, d c, d h, d c) * other factor * slope.
        gate_factors = gates * gates
        torch.sub(gates[..., : 3 * width], gate_factors[..., : 3 * width], out=gate_factors[..., : 3 * width])
        torch.sub(1, gate_factors[..., 3 * width :], out=gate_factors[..., 3 * width :])
        for gate_part, other_factor in zip(gate_factors.split(width, -1), (g, previous(cells), tanh_c, i), strict=True):
            gate_part.mul_(other_factor)
        slope_c = o * (1 - tanh_c * tanh_c)
        d_z, d_c, d_h_next = torch.empty_like(gates), None, None
        sequences = [sequence.unbind(-2) for sequence in (d_h, gate_factors, slope_c, f, d_z)]
        for d_h_t, gate_factors_t, slope_c_t, f_t, d_z_t in zip(*map(reversed, sequences), strict=True):
            d_h_t = d_h_t if d_h_next is None else d_h_t + d_h_next
            d_c = d_h_t * slope_c_t if d_c is None else d_c.addcmul(d_h_t, slope_c_t)
            torch.mul(torch.cat([d_c, d_c, d_h_t, d_c], -1), gate_factors_t, out=d_z_t)
            d_h_next, d_c = _product(d_z_t, weight), d_c * f_t
        as_rows = lambda states: states.flatten(-3, -2)  # noqa: E731
        d_z_R, previous_h_R = as_rows(d_z), as_rows(previous(h))
        return d_z, kernels.turned_product(d_z_R, previous_h_R) if d_z_R.dim() == 2 else torch.bmm(d_z_R.mT, previous_h_R)
