/// Recognises tensors of torch, which is never imported here.
#pragma once

#include <nanobind/nanobind.h>

namespace rl4sys::python {

/// Whether an object is a `torch.Tensor`, and not of a subclass.
bool is_tensor(nanobind::handle object) noexcept;

/// Replace a tensor by an array over its memory, without its gradient. False, without an error, if it has none that
/// numpy can read, such as a tensor of a GPU. May run other threads.
bool take_array(nanobind::object& tensor);

}  // namespace rl4sys::python
