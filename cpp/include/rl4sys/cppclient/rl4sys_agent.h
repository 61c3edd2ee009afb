/// @file
/// The agent of the original C++ client under its original header and namespace. Link `rl4sys::cppclient`.
#pragma once

#include "rl4sys_types.h"

namespace rl4sys {
namespace cppclient {

using rl4sys::RL4SysAgent;

}  // namespace cppclient
}  // namespace rl4sys
