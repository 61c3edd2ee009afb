// Compiled with AVX-512 where the compiler knows it, and then called only on machines that gain from it.
#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512DQ__) && defined(__AVX512BW__)
#define RL4SYS_KERNELS "avx512"
#define RL4SYS_LANES 16
#include "policy/kernels.inc"

namespace rl4sys::detail {

const Kernels* avx512_kernels() noexcept {
    // The first processors with AVX-512 slow down when they use it; those with VBMI2 do not.
    return __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi2")
               ? &kernels
               : nullptr;
}

}  // namespace rl4sys::detail
#else
#include "policy/kernels.hpp"

namespace rl4sys::detail {

const Kernels* avx512_kernels() noexcept {
    return nullptr;
}

}  // namespace rl4sys::detail
#endif
