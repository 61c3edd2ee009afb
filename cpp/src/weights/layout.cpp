#include <cmath>

#include "rl4sys/weights.hpp"

namespace rl4sys {

Layout::Layout(const std::vector<Tensor>& tensors) {
    std::uint64_t end = 0;
    for (const Tensor& tensor : tensors) {
        const std::size_t values = value_count(tensor.shape);
        if (!places_.emplace(tensor.name, Place{static_cast<std::size_t>(end), tensor.shape}).second) {
            throw LayoutMismatch("Tensor '" + tensor.name + "' appears twice; give each tensor a name of its own.");
        }
        end += values;
        if (end > most_weights) {
            throw LayoutMismatch("The tensors up to '" + tensor.name + "' have " + std::to_string(end) +
                                 " values; at most " + std::to_string(most_weights) + " are allowed.");
        }
    }
    size_ = static_cast<std::size_t>(end);
}

const Layout::Place& Layout::find(const std::string& name) const {
    const auto place = places_.find(name);
    if (place == places_.end()) throw LayoutMismatch("There is no tensor '" + name + "' in this layout.");
    return place->second;
}

bool all_finite(const Weights& weights) noexcept {
    for (const float weight : weights) {
        if (!std::isfinite(weight)) return false;
    }
    return true;
}

}  // namespace rl4sys
