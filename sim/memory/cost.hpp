// What an Eigen expression costs, read off its type and sizes: SRAM elements of its operands, exps, other operations.
// So a stage writes plain Eigen, and the statement that computes is the statement that counts.
#pragma once

#include "sim/memory/eigen.hpp"

namespace flash::sim {

/// Of one elementwise pass or reduction; each operand tile is read once.
struct Cost {
  Index reads = 0;  // SRAM elements
  Index exps = 0, others = 0;
  Cost operator+(const Cost& b) const { return {reads + b.reads, exps + b.exps, others + b.others}; }
};

namespace detail {

/// A leaf: a tile, a column, or a block of one. Every other kind of expression needs a rule below.
template <class Expression>
struct CostOf {
  static_assert(Eigen::internal::traits<Expression>::Flags & Eigen::DirectAccessBit, "how is this counted?");
  static Cost of(const Expression& e) { return {.reads = e.size()}; }
};

template <class Expression>
Cost cost(const Expression& e) {
  return CostOf<Expression>::of(e);
}

template <class Op>
constexpr bool is_exp = false;
template <class Scalar>
constexpr bool is_exp<Eigen::internal::scalar_exp_op<Scalar>> = true;

template <class Op, class X>
struct CostOf<Eigen::CwiseUnaryOp<Op, X>> {
  static Cost of(const Eigen::CwiseUnaryOp<Op, X>& e) {
    const Cost self = is_exp<Op> ? Cost{.exps = e.size()} : Cost{.others = e.size()};
    return cost(e.nestedExpression()) + self;
  }
};

template <class Op, class Left, class Right>
struct CostOf<Eigen::CwiseBinaryOp<Op, Left, Right>> {
  static Cost of(const Eigen::CwiseBinaryOp<Op, Left, Right>& e) {
    return cost(e.lhs()) + cost(e.rhs()) + Cost{.others = e.size()};
  }
};

template <class Condition, class Then, class Else>
struct CostOf<Eigen::Select<Condition, Then, Else>> {
  static Cost of(const Eigen::Select<Condition, Then, Else>& e) {
    return cost(e.conditionMatrix()) + cost(e.thenMatrix()) + cost(e.elseMatrix()) + Cost{.others = e.size()};
  }
};

template <class Op, class Plain>
struct CostOf<Eigen::CwiseNullaryOp<Op, Plain>> {
  static Cost of(const Eigen::CwiseNullaryOp<Op, Plain>&) { return {}; }  // a constant
};

template <class X, class Op, int direction>
struct CostOf<Eigen::PartialReduxExpr<X, Op, direction>> {
  static Cost of(const Eigen::PartialReduxExpr<X, Op, direction>& e) {
    return cost(e.nestedExpression()) + Cost{.others = e.nestedExpression().size()};
  }
};

template <class X, int r, int c>
struct CostOf<Eigen::Replicate<X, r, c>> {
  static Cost of(const Eigen::Replicate<X, r, c>& e) { return cost(e.nestedExpression()); }
};

template <class X>
struct CostOf<Eigen::ArrayWrapper<X>> {
  static Cost of(const Eigen::ArrayWrapper<X>& e) { return cost(e.nestedExpression()); }
};

template <class X>
struct CostOf<Eigen::MatrixWrapper<X>> {
  static Cost of(const Eigen::MatrixWrapper<X>& e) { return cost(e.nestedExpression()); }
};

template <class X>
struct CostOf<Eigen::Transpose<X>> {
  static Cost of(const Eigen::Transpose<X>& e) { return cost(e.nestedExpression()); }
};

/// diag(x)·A is a pass over A. Other products are counted where they are assigned and can't be part of a pass.
template <class X, class Right, int option>
struct CostOf<Eigen::Product<Eigen::DiagonalWrapper<X>, Right, option>> {
  static Cost of(const Eigen::Product<Eigen::DiagonalWrapper<X>, Right, option>& e) {
    return cost(e.lhs().diagonal()) + cost(e.rhs()) + Cost{.others = e.size()};
  }
};

template <class Left, class Right, int option>
struct CostOf<Eigen::Product<Left, Right, option>> {
  static_assert(sizeof(Left) == 0, "give a matrix product a statement of its own: C = A * B or C += A * B");
};

}  // namespace detail

/// Is the expression a matrix product, with or without a scalar factor in front?
template <class Expression>
constexpr bool is_matrix_product = false;
template <class Left, class Right, int option>
constexpr bool is_matrix_product<Eigen::Product<Left, Right, option>> = true;
template <class X, class Right, int option>
constexpr bool is_matrix_product<Eigen::Product<Eigen::DiagonalWrapper<X>, Right, option>> = false;

template <class Expression>
constexpr bool is_diagonal_product = false;
template <class X, class Right, int option>
constexpr bool is_diagonal_product<Eigen::Product<Eigen::DiagonalWrapper<X>, Right, option>> = true;

template <class Expression>
Cost cost(const Expression& e) {
  return detail::cost(e);
}

}  // namespace flash::sim
