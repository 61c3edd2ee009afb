#if defined(__aarch64__)
#define RL4SYS_KERNELS "neon"
#else
#define RL4SYS_KERNELS "generic"
#endif
#define RL4SYS_LANES 4
#include "policy/kernels.inc"

namespace rl4sys::detail {

const Kernels& baseline_kernels() noexcept {
    return kernels;
}

}  // namespace rl4sys::detail
