// Compiled with -march=native, as Cling compiles a notebook, and handed objects of a library that is not.
#pragma once

#include "sim/memory/machine.hpp"

namespace flash::march_native {

/// A·B [m,n] of the plain matrices A [m,k] and B [k,n]; allocated here, freed by the caller.
sim::RowMajor<double> product(const sim::RowMajor<double>& A, const sim::RowMajor<double>& B);

/// S = 2·A·Bᵀ, then S's row sums: on tiles that the caller's worker holds.
void scores_and_sums(const sim::Tile<float>& A, const sim::Tile<float>& B, sim::Tile<float>& S,
                     sim::Column<float>& sums);

/// A whole run made here: O [rows, cols] becomes Q + 1, on tiles of `block` rows.
void add_one(const sim::HbmMatrix<float>& Q, const sim::HbmMatrix<float>& O, Index block, sim::Machine<float>& machine);

}  // namespace flash::march_native
