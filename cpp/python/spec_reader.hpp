/// Reads a policy as data from what `json.loads(PolicySpec.to_json())` gives.
#pragma once

#include <nanobind/nanobind.h>

#include "rl4sys/policy_spec.hpp"

namespace rl4sys::python {

/// @throws BadPolicy, or an error of Python for values of other types than a spec has.
PolicySpec read_spec(nanobind::dict raw);

}  // namespace rl4sys::python
