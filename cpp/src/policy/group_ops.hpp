/// @file
/// Ops over vectors of several equal parts, elementwise products, and attention.
#pragma once

#include "policy/op_reader.hpp"

namespace rl4sys::detail {

Step compile_multiply(OpReader& op);
Step compile_symlog(OpReader& op);
Step compile_softmax(OpReader& op);
Step compile_grouped_linear(OpReader& op);
Step compile_gate(OpReader& op);
Step compile_latent(OpReader& op);
Step compile_attention(OpReader& op);

}  // namespace rl4sys::detail
