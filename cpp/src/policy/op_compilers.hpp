/// @file
/// The ops that have files of their own: convolution.cpp, group_ops.cpp, attention.cpp, candidate_ops.cpp,
/// window_ops.cpp and shape_ops.cpp.
#pragma once

#include "policy/op_reader.hpp"

namespace rl4sys::detail {

Step compile_conv2d(OpReader& op);
Step compile_multiply(OpReader& op);
Step compile_symlog(OpReader& op);
Step compile_log(OpReader& op);
Step compile_softmax(OpReader& op);
Step compile_grouped_linear(OpReader& op);
Step compile_gate(OpReader& op);
Step compile_latent(OpReader& op);
Step compile_attention(OpReader& op);
Step compile_candidate_linear(OpReader& op);
Step compile_candidate_pool(OpReader& op);
Step compile_conv1d(OpReader& op);
Step compile_max_pool1d(OpReader& op);
Step compile_max_pool2d(OpReader& op);
Step compile_average_pool1d(OpReader& op);
Step compile_average_pool2d(OpReader& op);
Step compile_slice(OpReader& op);
Step compile_reshape(OpReader& op);

}  // namespace rl4sys::detail
