#define RL4SYS_KERNELS "baseline"
#define RL4SYS_LANES 4
#include "policy/kernels.inc"

namespace rl4sys::detail {

const Kernels& baseline_kernels() noexcept {
    return kernels;
}

const Kernels& best_kernels() noexcept {
    const Kernels* fast = avx2_kernels();
    return fast == nullptr ? baseline_kernels() : *fast;
}

}  // namespace rl4sys::detail
