#!/usr/bin/env python3
"""Other people's attention kernels, timed for `flashsteps bench --peers`, which starts this and asks a question a line:

  {"peer": "flash", "launches": 3, "cell": {"batch": 4, "heads": 32, "kv_heads": 32, "nq": 4096, "nk": 4096, "d": 64,
                                            "dtype": "bf16", "causal": false, "backward": false}}

The answer is a line, too: {"seconds": …} of so many launches by CUDA events, or {"why": …} in one sentence. 0 launches
ask for a check on a small problem instead, against PyTorch in fp32: {"version": …, "error": …, "tolerance": …}.
"""
import importlib
import importlib.metadata
import json
import math
import os
import sys

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what libraries print is no answer


class Absent(Exception):
    """Why a peer can't be timed: a sentence."""


def imported(module, package):
    try:
        return importlib.import_module(module)
    except Exception as error:  # whatever an import raises
        raise Absent(f"python3 can't import {module} ({type(error).__name__}: {error}); install {package}") from error


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


# ---- the peers: each takes q, k, v [batch, heads, N, d] and whether it is causal

def sdpa(backend):
    torch = imported("torch", "PyTorch")
    attention = imported("torch.nn.attention", "PyTorch")

    def forward(q, k, v, causal):
        grouped = {"enable_gqa": True} if q.shape[1] != k.shape[1] else {}
        with attention.sdpa_kernel([getattr(attention.SDPBackend, backend)]):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, **grouped)
    return forward


def flash():
    return sdpa("FLASH_ATTENTION"), f"PyTorch {version('torch')}"


def cudnn():
    forward = sdpa("CUDNN_ATTENTION")
    return forward, f"PyTorch {version('torch')}, cuDNN {imported('torch', 'PyTorch').backends.cudnn.version()}"


def efficient():
    return sdpa("EFFICIENT_ATTENTION"), f"PyTorch {version('torch')}"


def math_backend():
    return sdpa("MATH"), f"PyTorch {version('torch')}"


def triton():
    imported("torch", "PyTorch")
    imported("triton", "Triton")
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    return imported("triton_attention", "Triton").forward, f"Triton {version('triton')}"


def token_major(function):
    """For packages whose tensors are [batch, N, heads, d]."""
    def forward(q, k, v, causal):
        out = function(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), causal=causal)
        return (out[0] if isinstance(out, tuple) else out).transpose(1, 2)
    return forward


def fa3():
    package = "fa3-fwd"
    return token_major(imported("fa3_fwd_interface", package).flash_attn_func), f"{package} {version(package)}"


def fa4():
    package = "flash-attn-4"
    return token_major(imported("flash_attn.cute", package).flash_attn_func), f"{package} {version(package)}"


PEERS = {"flash": flash, "cudnn": cudnn, "efficient": efficient, "math": math_backend, "triton": triton, "fa3": fa3,
         "fa4": fa4}
FORWARD_ONLY = {"triton": "the Triton kernel here has no backward pass",
                "fa3": "fa3_fwd_interface has no backward pass"}
TOKEN_MAJOR = {"fa3", "fa4"}


# ---- a cell

def drawn(torch, cell, token_major):
    """q, k, v and dO; in memory [batch, N, heads, d] where the peer wants that."""
    generator = torch.Generator("cuda").manual_seed(1)
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}[cell["dtype"]]

    def tensor(heads, rows):
        shape = [cell["batch"], heads, rows, cell["d"]]
        if token_major:
            shape[1:3] = shape[2], shape[1]
        values = torch.randn(shape, device="cuda", dtype=dtype, generator=generator)
        return values.transpose(1, 2) if token_major else values
    q, dO = (tensor(cell["heads"], cell["nq"]) for _ in range(2))
    k, v = (tensor(cell["kv_heads"], cell["nk"]) for _ in range(2))
    return q, k, v, dO


def outputs(torch, forward, tensors, cell):
    """O, or with backward dQ, dK, dV."""
    q, k, v, dO = tensors
    if not cell["backward"]:
        return [forward(q, k, v, cell["causal"])]
    q, k, v = (t.detach().requires_grad_() for t in (q, k, v))
    return torch.autograd.grad(forward(q, k, v, cell["causal"]), (q, k, v), dO)


def plain(q, k, v, causal):
    """Attention in the dtype of its arguments, S and P in memory."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    S = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        S = S.masked_fill(S.new_ones(S.shape[-2:], dtype=bool).triu(1), float("-inf"))
    return S.softmax(-1) @ v


def check(torch, forward, cell, token_major):
    """The worst error of a ragged small problem and its tolerance: twice plain attention's in this dtype, and 4 eps."""
    small = {**cell, "batch": 1, "heads": 2 * cell["heads"] // cell["kv_heads"], "kv_heads": 2,
             "nq": 193 if cell["nq"] > 1 else 1, "nk": 193}
    tensors = drawn(torch, small, token_major)
    exact = outputs(torch, plain, [t.float() for t in tensors], small)
    rounded = outputs(torch, plain, tensors, small)
    worst = (0.0, 0.0)
    for got, base, wanted in zip(outputs(torch, forward, tensors, small), rounded, exact):
        error = (got.float() - wanted).abs().max().item()
        allowed = 2 * (base.float() - wanted).abs().max().item()
        allowed += 2 * torch.finfo(got.dtype).eps * max(1.0, wanted.abs().max().item())  # finfo's eps is twice ours
        if not error <= allowed:
            raise Absent(f"it is off by {error:.1e} on a small problem, where {allowed:.1e} is allowed")
        worst = max(worst, (error, allowed), key=lambda pair: pair[0] / pair[1] if pair[1] else 0)
    return {"error": worst[0], "tolerance": worst[1]}


class Timed:
    """One peer on one cell: its tensors, and what is launched."""

    def __init__(self, torch, forward, cell, token_major):
        self.torch = torch
        q, k, v, dO = drawn(torch, cell, token_major)
        causal = cell["causal"]
        if not cell["backward"]:
            self.work = lambda: forward(q, k, v, causal)
            return
        q, k, v = (t.detach().requires_grad_() for t in (q, k, v))
        O = forward(q, k, v, causal)
        self.work = lambda: torch.autograd.grad(O, (q, k, v), dO, retain_graph=True)

    def seconds(self, launches):
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.torch.cuda._sleep(1_000_000)  # cycles: so that launches are queued before the first begins
        begin.record()
        for _ in range(launches):
            self.work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3


# ---- questions and answers

class Answers:
    def __init__(self):
        self.cell = None
        self.timed = {}  # by peer: tensors of this cell

    def answer(self, peer, cell, launches):
        torch = imported("torch", "PyTorch")
        if not torch.cuda.is_available():
            raise Absent("PyTorch finds no GPU here")
        if cell["backward"] and peer in FORWARD_ONLY:
            raise Absent(FORWARD_ONLY[peer])
        if cell["causal"] and cell["nq"] != cell["nk"]:
            raise Absent("peers don't agree on which keys a query sees where there are more keys than queries")
        if cell != self.cell:
            self.cell, self.timed = cell, {}
            torch.cuda.empty_cache()
        forward, words = PEERS[peer]()
        if launches == 0:
            return {"version": words, **check(torch, forward, cell, peer in TOKEN_MAJOR)}
        if peer not in self.timed:
            self.timed[peer] = Timed(torch, forward, cell, peer in TOKEN_MAJOR)
        return {"seconds": self.timed[peer].seconds(launches)}


def main():
    asked = Answers()
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = asked.answer(question["peer"], question["cell"], question["launches"])
        except Absent as absent:
            answer = {"why": str(absent)}
        except Exception as error:  # a peer's own reason for not taking a cell
            asked.timed.pop(question["peer"], None)
            answer = {"why": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
