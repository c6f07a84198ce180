// Which lane of a warp holds which element of a matrix operand: the one map behind the virtual GPU, the drawings in the
// documentation and the row and column of an accumulator in a kernel. (PTX ISA 9.0, section 9.7.14.5, "matrix fragments
// for mma.m16n8k8 / m16n8k16", and section 9.7.14.5.15, ldmatrix.) It includes nothing, so that anyone can use it.
#pragma once

#ifndef FLASH_LAYOUT
#define FLASH_LAYOUT constexpr
#endif

namespace flash::ptx::layout {

/// Row and column of a matrix element.
struct Element {
  int row, col;
};

/// A [16, K] of mma.m16n8kK, 16-bit elements; i counts those of one lane: i = 2·register + half, K/2 of them.
FLASH_LAYOUT Element mma_a(int lane, int i) { return {lane / 4 + 8 * (i / 2 % 2), lane % 4 * 2 + i % 2 + 8 * (i / 4)}; }

/// B [K, 8] of mma.m16n8kK, 16-bit elements; i = 2·register + half, K/4 of them. The row is k, the column n.
FLASH_LAYOUT Element mma_b(int lane, int i) { return {lane % 4 * 2 + i % 2 + 8 * (i / 2), lane / 4}; }

/// C and D [16, 8] of mma.m16n8kK, fp32; i is the register, 4 of them.
FLASH_LAYOUT Element mma_c(int lane, int i) { return {lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2}; }

/// An 8×8 matrix of 16-bit elements that ldmatrix brings; i = 0, 1 are the halves of its register. The row is the one
/// whose address lane `row` (+ 8·matrix) gave.
FLASH_LAYOUT Element ldmatrix(int lane, int i) { return {lane / 4, lane % 4 * 2 + i}; }

/// The same with .trans.
FLASH_LAYOUT Element ldmatrix_trans(int lane, int i) { return {lane % 4 * 2 + i, lane / 4}; }

}  // namespace flash::ptx::layout
