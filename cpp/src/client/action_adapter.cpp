#include "client/action_adapter.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace rl4sys::client {
namespace {

// Rounding may lead just beyond a bound; one percent of the range counts as agreement.
constexpr float slack = 1e-5F;
constexpr float near = 0.01F;

template <typename Number>
std::string listed(const std::vector<Number>& values) {
    std::ostringstream text;
    text << "[";
    for (std::size_t place = 0; place < values.size(); ++place) {
        text << (place == 0 ? "" : ", ") << values[place];
    }
    text << "]";
    return text.str();
}

std::string counted(std::size_t choices, std::size_t numbers) {
    return std::to_string(choices) + (choices == 1 ? " choice" : " choices") + " and " + std::to_string(numbers) +
           (numbers == 1 ? " number" : " numbers");
}

}  // namespace

ActionAdapter::ActionAdapter(const ActionSpec& action, std::shared_ptr<const ActionStructure> structure)
    : structure_(std::move(structure)) {
    if (const auto* discrete = std::get_if<DiscreteAction>(&action)) {
        sizes_ = {discrete->n};
        starts_ = {discrete->start};
        is_one_ = true;
    } else if (const auto* several = std::get_if<MultiDiscreteAction>(&action)) {
        sizes_ = several->sizes;
    } else if (const auto* box = std::get_if<BoxAction>(&action)) {
        low_.assign(box->low.begin(), box->low.end());
        high_.assign(box->high.begin(), box->high.end());
    } else if (const auto* mixed = std::get_if<MixedAction>(&action)) {
        sizes_ = mixed->sizes;
        low_.assign(mixed->low.begin(), mixed->low.end());
        high_.assign(mixed->high.begin(), mixed->high.end());
        is_mixed_ = true;
    }
    starts_.resize(sizes_.size(), 0);
    for (std::size_t part = 0; structure_ != nullptr && part < structure_->parts().size(); ++part) {
        const ActionPart& one = structure_->parts()[part];
        if (const auto* discrete = std::get_if<DiscreteAction>(&one.spec)) {
            starts_.at(one.at) = discrete->start;
        }
    }
    for (std::size_t part = 0; part < low_.size(); ++part) {
        const float spread = high_[part] - low_[part];
        spread_.push_back(std::isfinite(low_[part]) && std::isfinite(high_[part]) ? spread : 1.0F);
    }
}

void ActionAdapter::finish(const Decision& decision, ActionValues& action) const {
    action.choices.resize(sizes_.size());
    action.numbers.resize(low_.size());
    for (std::size_t part = 0; part < sizes_.size(); ++part) {
        const auto choice = is_mixed_ ? static_cast<std::int64_t>(decision.numbers[part]) : decision.choices[part];
        action.choices[part] = choice + starts_[part];
    }
    const float* numbers = decision.numbers + (is_mixed_ ? sizes_.size() : 0);
    for (std::size_t part = 0; part < low_.size(); ++part) {
        action.numbers[part] = std::min(std::max(numbers[part], low_[part]), high_[part]);
    }
}

std::string ActionAdapter::read(const FallbackAction& given, ActionValues& action) const {
    if (std::string problem = flatten(given, action); !problem.empty()) {
        return problem;
    }
    if (action.choices.size() != sizes_.size() || action.numbers.size() != low_.size()) {
        return "Got " + counted(action.choices.size(), action.numbers.size()) + "; expected " +
               counted(sizes_.size(), low_.size()) + ".";
    }
    for (std::size_t part = 0; part < sizes_.size(); ++part) {
        // As a difference of unsigned numbers, which cannot overflow.
        const auto choice =
            static_cast<std::uint64_t>(action.choices[part]) - static_cast<std::uint64_t>(starts_[part]);
        if (action.choices[part] < starts_[part] || choice >= static_cast<std::uint64_t>(sizes_[part])) {
            return is_one_
                       ? "Got " + std::to_string(action.choices[part]) + "; expected a whole number from " +
                             std::to_string(starts_[0]) + " to " + std::to_string(starts_[0] + sizes_[0] - 1) + "."
                       : "Got " + listed(action.choices) + "; expected " + std::to_string(sizes_.size()) +
                             " whole numbers from " + listed(starts_) + ", with " + listed(sizes_) + " choices each.";
        }
    }
    for (std::size_t part = 0; part < low_.size(); ++part) {
        const float number = action.numbers[part];
        const float margin = slack * spread_[part];
        if (!std::isfinite(number) || number < low_[part] - margin || number > high_[part] + margin) {
            return "Got " + listed(action.numbers) + "; expected numbers from " + listed(low_) + " to " +
                   listed(high_) + ".";
        }
    }
    return "";
}

/// Puts named parts in the order of the flat action; nothing is checked of their values.
std::string ActionAdapter::flatten(const FallbackAction& given, ActionValues& action) const {
    if (given.parts.empty()) {
        action.choices = given.choices;
        action.numbers = given.numbers;
        return "";
    }
    action.choices.assign(sizes_.size(), 0);
    action.numbers.assign(low_.size(), 0.0F);
    const std::size_t expected = structure_ == nullptr ? 0 : structure_->parts().size();
    for (const FallbackPart& part : given.parts) {
        const ActionPart* found = structure_ == nullptr ? nullptr : structure_->find(part.path);
        const bool fits = found != nullptr &&
                          (found->is_choice ? part.choices.size() == found->size : part.numbers.size() == found->size);
        if (!fits || given.parts.size() != expected) {
            std::string names;
            for (std::size_t place = 0; place < expected; ++place) {
                const ActionPart& one = structure_->parts()[place];
                names += (place == 0 ? "" : ", ") + one.path + " (" + std::to_string(one.size) +
                         (one.is_choice ? " of choices)" : " of numbers)");
            }
            return "Got " + std::to_string(given.parts.size()) + " parts with '" + part.path +
                   "', which do not fit; expected " + (names.empty() ? "an action without parts" : names) + ".";
        }
        std::copy(part.choices.begin(), part.choices.end(),
                  action.choices.begin() + static_cast<std::ptrdiff_t>(found->is_choice ? found->at : 0));
        std::copy(part.numbers.begin(), part.numbers.end(),
                  action.numbers.begin() + static_cast<std::ptrdiff_t>(found->is_choice ? 0 : found->at));
    }
    return "";
}

std::vector<std::int64_t> ActionAdapter::choices(const ActionValues& action) const {
    std::vector<std::int64_t> choices = action.choices;
    for (std::size_t part = 0; part < choices.size(); ++part) {
        choices[part] -= starts_[part];
    }
    return choices;
}

ActionValues ActionAdapter::row(const ActionValues& action) const {
    ActionValues row{choices(action), action.numbers};
    if (is_mixed_) {
        row.numbers.insert(row.numbers.begin(), row.choices.begin(), row.choices.end());
        row.choices.clear();
    }
    return row;
}

bool ActionAdapter::agree(const Decision& decision, const ActionValues& action) const {
    ActionValues decided;
    finish(decision, decided);
    if (decided.choices != action.choices) {
        return false;
    }
    for (std::size_t part = 0; part < low_.size(); ++part) {
        if (!(std::abs(decided.numbers[part] - action.numbers[part]) <= near * spread_[part])) {
            return false;
        }
    }
    return true;
}

}  // namespace rl4sys::client
