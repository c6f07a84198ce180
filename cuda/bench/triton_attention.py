"""FlashAttention-2's forward pass in Triton, plainly: one program a row block and head, K and V tile by tile."""
import math

import torch
import triton
import triton.language as tl


@triton.jit
def over_tiles(O, l, m, q, K, V, rows, begin, end, factor, Nk, d: tl.constexpr, Bc: tl.constexpr, MASKED: tl.constexpr,
               CAUSAL: tl.constexpr):
    """The running O, l, m after the columns from begin to end; MASKED: some of them are not seen."""
    channels = tl.arange(0, d)
    for first in range(begin, end, Bc):
        cols = first + tl.arange(0, Bc)
        at = cols[:, None] * d + channels[None, :]
        if MASKED:
            k = tl.load(K + at, mask=cols[:, None] < Nk, other=0.0)
            v = tl.load(V + at, mask=cols[:, None] < Nk, other=0.0)
        else:
            k = tl.load(K + at)
            v = tl.load(V + at)
        S = tl.dot(q, tl.trans(k)) * factor
        if MASKED:
            seen = cols[None, :] < Nk
            if CAUSAL:
                seen = seen & (cols[None, :] <= rows[:, None])
            S = tl.where(seen, S, float("-inf"))
        m_new = tl.maximum(m, tl.max(S, 1))
        P = tl.exp2(S - m_new[:, None])
        alpha = tl.exp2(m - m_new)
        l = l * alpha + tl.sum(P, 1)
        O = tl.dot(P.to(v.dtype), v, O * alpha[:, None])
        m = m_new
    return O, l, m


TILES = [triton.Config({"Br": 128, "Bc": 64}, num_warps=4, num_stages=3),
         triton.Config({"Br": 128, "Bc": 64}, num_warps=8, num_stages=3),
         triton.Config({"Br": 128, "Bc": 64}, num_warps=8, num_stages=2),
         triton.Config({"Br": 128, "Bc": 128}, num_warps=8, num_stages=2),
         triton.Config({"Br": 64, "Bc": 64}, num_warps=4, num_stages=2)]


@triton.autotune(TILES, key=["d", "CAUSAL"])
@triton.jit
def attention(Q, K, V, O, factor, heads, kv_heads, Nq, Nk, d: tl.constexpr, CAUSAL: tl.constexpr, Br: tl.constexpr,
              Bc: tl.constexpr):
    block = tl.num_programs(0) - 1 - tl.program_id(0)  # under a causal mask the longest rows begin
    batch, head = tl.program_id(1) // heads, tl.program_id(1) % heads
    kv = batch.to(tl.int64) * kv_heads + head * kv_heads // heads
    of_head = (batch.to(tl.int64) * heads + head) * Nq * d
    rows = block * Br + tl.arange(0, Br)
    at = rows[:, None] * d + tl.arange(0, d)[None, :]
    q = tl.load(Q + of_head + at, mask=rows[:, None] < Nq, other=0.0)
    K += kv * Nk * d
    V += kv * Nk * d

    whole = Nk // Bc * Bc  # columns of tiles that are seen as a whole
    end = Nk
    if CAUSAL:
        whole = tl.minimum(whole, block * Br // Bc * Bc)
        end = tl.minimum(Nk, block * Br + Br)
    o = tl.zeros([Br, d], tl.float32)
    l = tl.zeros([Br], tl.float32)
    m = tl.full([Br], float("-inf"), tl.float32)
    o, l, m = over_tiles(o, l, m, q, K, V, rows, 0, whole, factor, Nk, d, Bc, False, CAUSAL)
    o, l, m = over_tiles(o, l, m, q, K, V, rows, whole, end, factor, Nk, d, Bc, True, CAUSAL)
    o = o / l[:, None]
    tl.store(O + of_head + at, o.to(O.dtype.element_ty), mask=rows[:, None] < Nq)


def forward(q, k, v, causal):
    """q [batch, heads, Nq, d]; k, v [batch, kv_heads, Nk, d]; causal where Nq = Nk."""
    batch, heads, Nq, d = q.shape
    O = torch.empty_like(q)
    factor = math.log2(math.e) / math.sqrt(d)
    attention[lambda tiles: (triton.cdiv(Nq, tiles["Br"]), batch * heads)](
        q, k, v, O, factor, heads, k.shape[1], Nq, k.shape[2], d, causal)
    return O
