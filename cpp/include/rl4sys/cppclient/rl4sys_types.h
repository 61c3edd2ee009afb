/// @file
/// The types of the original C++ client under their original header and namespace.
#pragma once

#include <rl4sys/rl4sys_agent.hpp>

namespace rl4sys {
/// The namespace of the original C++ client.
namespace cppclient {

using rl4sys::RL4SysAction;
using rl4sys::RL4SysTrajectory;

}  // namespace cppclient
}  // namespace rl4sys
