// What happens to a score besides the product, and to a probability: the rules of stages/common/rules.hpp.

/** The interval of keys that causal and window leave to query i: [first, last], both included. */
function seenInterval(problem, i) {
  const { n_q: nq, n_k: nk, causal, window = [-1, -1] } = problem;
  const everything = nq + nk, centre = i + nk - nq;
  const side = (w) => (w >= 0 && w < everything ? w : everything);
  return [centre - side(window[0]), centre + (causal ? 0 : side(window[1]))];
}

const seenByPosition = (problem, i, j) => {
  const [first, last] = seenInterval(problem, i);
  return j >= first && j <= last;
};

/** Does every query of the rows see every key of the columns? Then the mask has nothing to do. */
function isTileFull(problem, rows, cols) {
  return cols[0] >= seenInterval(problem, rows[1] - 1)[0] && cols[1] - 1 <= seenInterval(problem, rows[0])[1];
}

const alibiDistance = (problem, i, j) => Math.abs(i + problem.n_k - problem.n_q - j);

/** Philox4x32-10: the word that decides whether entry (b, h, i, j) of P drops. */
function dropoutWord(seed, b, h, i, j) {
  const mask = 0xffffffffn;
  let k0 = BigInt(seed) & mask, k1 = (BigInt(seed) >> 32n) & mask;
  let c = [BigInt(Math.floor(j / 4)), BigInt(i), BigInt(h), BigInt(b)];
  for (let round = 0; round < 10; ++round) {
    const p0 = 0xd2511f53n * c[0], p1 = 0xcd9e8d57n * c[2];
    c = [(p1 >> 32n) ^ c[1] ^ k0, p1 & mask, (p0 >> 32n) ^ c[3] ^ k1, p0 & mask];
    k0 = (k0 + 0x9e3779b9n) & mask, k1 = (k1 + 0xbb67ae85n) & mask;
  }
  return Number(c[j % 4]);
}
