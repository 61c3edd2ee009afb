#include "policy/kernel_sets.hpp"

namespace rl4sys::detail {

std::vector<const Kernels*> available_kernels() {
    std::vector<const Kernels*> found;
    for (const Kernels* kernels : {avx512_kernels(), avx2_kernels(), &baseline_kernels()}) {
        if (kernels != nullptr) found.push_back(kernels);
    }
    return found;
}

const Kernels& best_kernels() noexcept {
    if (const Kernels* widest = avx512_kernels()) return *widest;
    if (const Kernels* wide = avx2_kernels()) return *wide;
    return baseline_kernels();
}

}  // namespace rl4sys::detail
