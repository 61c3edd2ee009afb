#include "weights/int8_delta.hpp"

#include <cfloat>

#if defined(__FAST_MATH__)
#error "Patches must be applied with IEEE arithmetic: compile without -ffast-math."
#endif
static_assert(FLT_EVAL_METHOD == 0, "Patches must be applied in float32: choose SSE arithmetic.");

namespace rl4sys {

void add_scaled(float* weights, const std::int8_t* quantised, float scale, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        const float change = static_cast<float>(quantised[i]) * scale;
        weights[i] = weights[i] + change;
    }
}

}  // namespace rl4sys
