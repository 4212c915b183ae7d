"""Global weight shrinking, and the two gradients that work against each other in it. FedLAW, ICML 2023, section 4.2.

Equation 4 of the paper, with w_g^t the global model before the round:

    w_g^{t+1} = gamma (w_g^t - eta_g g_g^t) = w_g^t - gamma eta_g g_g^t - (1 - gamma) w_g^t.

"We refer (1 - gamma) w_g^t as the pseudo gradient of global weight shrinking (regularization term) and gamma eta_g g_g^t is the
global averaged gradient (optimization term)"; r (Figure 3) "is the ratio of the global gradient and the regularization pseudo
gradient". So both norms take the model before the round, and not the shrunk one.
"""

from fedrepro import tree
from fedrepro.tree import Tree
from fedrepro.types import ServerContext


def shrink(x: Tree, gamma: float, ctx: ServerContext) -> Tree:
    """gamma * x for the new global weights x [D]; notes `gamma` and, with w the weights before the round,

        global_gradient_norm = ||gamma (x - w)||,   shrink_gradient_norm = ||(1 - gamma) w||,   r = the first over the second.

    x - w is the server's step, -eta_g g_g for plain averaging. If the second norm is 0, mostly at gamma = 1, there is no r: it
    would be infinite, and a record holds finite numbers.
    """
    w = ctx.cohort.anchor
    shrink_norm, gradient_norm = abs(1 - gamma) * float(tree.norm(w)), gamma * float(tree.norm(tree.sub(x, w)))
    ctx.notes.update(gamma=gamma, global_gradient_norm=gradient_norm, shrink_gradient_norm=shrink_norm)
    if shrink_norm > 0:
        ctx.notes["r"] = gradient_norm / shrink_norm
    return tree.scale(x, gamma)
