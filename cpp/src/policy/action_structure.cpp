#include "rl4sys/action_structure.hpp"

#include <algorithm>
#include <stdexcept>

namespace rl4sys {
namespace {

/// Adds a part to the flat action; returns its place and size.
ActionPart added(const std::string& path, const ActionSpec& spec, MixedAction& sum) {
    ActionPart part{path, spec, sum.sizes.size(), 0, true};
    if (const auto* discrete = std::get_if<DiscreteAction>(&spec)) {
        sum.sizes.push_back(discrete->n);
        part.size = 1;
    } else if (const auto* several = std::get_if<MultiDiscreteAction>(&spec)) {
        sum.sizes.insert(sum.sizes.end(), several->sizes.begin(), several->sizes.end());
        part.size = several->sizes.size();
    } else if (const auto* box = std::get_if<BoxAction>(&spec)) {
        part.is_choice = false;
        part.at = sum.low.size();
        part.size = box->low.size();
        sum.low.insert(sum.low.end(), box->low.begin(), box->low.end());
        sum.high.insert(sum.high.end(), box->high.begin(), box->high.end());
    } else {
        throw std::invalid_argument("The action's part '" + path +
                                    "' is a mixed action; expected a part of choices or of real numbers.");
    }
    return part;
}

}  // namespace

ActionStructure::ActionStructure(const std::vector<std::pair<std::string, ActionSpec>>& parts) {
    if (parts.empty()) {
        throw std::invalid_argument("Got an action without parts; expected at least one.");
    }
    MixedAction sum;
    for (const auto& [path, spec] : parts) {
        if (find(path) != nullptr) {
            throw std::invalid_argument("Two parts of the action are called '" + path + "'. Rename one.");
        }
        parts_.push_back(added(path, spec, sum));
    }
    if (sum.low.empty()) {
        spec_ = MultiDiscreteAction{sum.sizes};
    } else if (sum.sizes.empty()) {
        spec_ = BoxAction{sum.low, sum.high};
    } else {
        spec_ = std::move(sum);
    }
}

const ActionPart* ActionStructure::find(std::string_view path) const noexcept {
    const auto found =
        std::find_if(parts_.begin(), parts_.end(), [&](const ActionPart& part) { return part.path == path; });
    return found == parts_.end() ? nullptr : &*found;
}

}  // namespace rl4sys
