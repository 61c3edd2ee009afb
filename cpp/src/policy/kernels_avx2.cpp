// Compiled with -mavx2 -mfma where the compiler knows them, and then called only on machines that have both.
#if defined(__AVX2__) && defined(__FMA__)
#define RL4SYS_KERNELS "avx2"
#define RL4SYS_LANES 8
#include "policy/kernels.inc"

namespace rl4sys::detail {

const Kernels* avx2_kernels() noexcept {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &kernels : nullptr;
}

}  // namespace rl4sys::detail
#else
#include "policy/kernels.hpp"

namespace rl4sys::detail {

const Kernels* avx2_kernels() noexcept {
    return nullptr;
}

}  // namespace rl4sys::detail
#endif
