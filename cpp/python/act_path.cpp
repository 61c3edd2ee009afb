#include "act_path.hpp"

#include <pthread.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace rl4sys::python {
namespace {

std::uint64_t forks = 0;

nb::object unusual() {
    return nb::borrow(Py_NotImplemented);
}

}  // namespace

void watch_forks() {
    pthread_atfork(nullptr, nullptr, [] { ++forks; });
}

Columns::Columns(const ActForm& form, nb::tuple given, nb::object actions, nb::object rewards, nb::object log_probs)
    : log_prob(nullptr), rows(nb::len(rewards)) {
    if (given.size() != form.inputs()) throw nb::value_error("Expected one column for each array that is observed.");
    for (std::size_t i = 0; i < form.inputs(); ++i) {
        // One more: the observation after the last step.
        observation.emplace_back(rows_of(given[i], form.input(i), rows + 1, true), form.input(i).bytes());
        arrays.emplace_back(given[i]);
    }
    action = rows_of(actions, form.action(), rows, true);
    action_bytes = form.action().bytes();
    const ArraySpec number{"reward", ElementType::Float32, {}};
    reward = reinterpret_cast<float*>(rows_of(rewards, number, rows, true));
    if (!log_probs.is_none()) log_prob = reinterpret_cast<float*>(rows_of(log_probs, number, rows, true));
    for (nb::object& array : {std::ref(actions), std::ref(rewards), std::ref(log_probs)}) {
        arrays.push_back(std::move(array));
    }
}

ActPath::ActPath(std::shared_ptr<ActContext> context, std::uint64_t key)
    : context_(std::move(context)),
      key_{static_cast<std::uint32_t>(key >> 32), static_cast<std::uint32_t>(key)},
      noise_(key_, 0) {}

void ActPath::open(std::shared_ptr<ActForm> form, std::shared_ptr<RowPolicy> policy, std::shared_ptr<Columns> columns,
                   nb::tuple carry, nb::object plan, nb::object is_locked, Opening opening) {
    if (opening.row > columns->rows || opening.room > columns->rows - opening.row) {
        throw nb::value_error("Expected as many rows as there is room for decisions.");
    }
    if (policy != policy_) {
        noise_ = KeyedNoise(key_, policy->noise_size());
        numbers_.resize(policy->noise_size());
        memory_.resize(policy->carry_size());
    }
    if (carry.ptr() != carry_arrays_.ptr()) {
        const std::vector<ArraySpec> memories = policy->spec().carry_arrays();
        if (carry.size() != memories.size()) throw nb::value_error("Expected an array for each memory of the policy.");
        carry_.clear();
        for (std::size_t i = 0; i < memories.size(); ++i) {
            carry_.emplace_back(reinterpret_cast<float*>(rows_of(carry[i], memories[i], 1, true)),
                                memories[i].values());
        }
        carry_arrays_ = std::move(carry);
    }
    form_ = std::move(form);
    policy_ = std::move(policy);
    columns_ = std::move(columns);
    rows_.resize(columns_->observation.size());
    plan_ = std::move(plan);
    is_locked_ = std::move(is_locked);
    opening_ = opening;
    taken_ = 0;
    forks_ = forks;
    is_open_ = true;
}

std::int64_t ActPath::close() {
    is_open_ = false;
    plan_.reset();
    return std::exchange(taken_, 0);
}

bool ActPath::is_free() const {
    return is_open_ && forks_ == forks && is_locked_().ptr() == Py_False;
}

nb::object ActPath::act(nb::handle observation, nb::handle mask, nb::handle now) {
    const std::int64_t number = opening_.first_decision + taken_;
    if (!is_open_ || taken_ == static_cast<std::int64_t>(opening_.room) || !now.is_none()) return unusual();
    const bool is_timed = number % context_->sampled == 0;
    using Clock = std::chrono::steady_clock;
    const Clock::time_point began = is_timed ? Clock::now() : Clock::time_point();
    if (!is_free() || context_->governor.attr("plan").ptr() != plan_.ptr()) return unusual();
    const std::size_t row = opening_.row + static_cast<std::size_t>(taken_);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        rows_[i] = columns_->observation[i].first + row * columns_->observation[i].second;
    }
    if (!form_->read(observation, mask, rows_.data())) return unusual();
    float* recalled = memory_.data();
    for (const auto& [values, size] : carry_) {
        std::memcpy(recalled, values, size * sizeof(float));
        recalled += size;
    }
    noise_.at(opening_.step + static_cast<std::uint64_t>(taken_), numbers_.data());
    const Decision decision = policy_->decide(reinterpret_cast<const void* const*>(rows_.data()), numbers_.data(),
                                              carry_.empty() ? nullptr : memory_.data());
    if (decision.outcome != Outcome::Decided) return unusual();
    record(decision);
    nb::object action = form_->finish(decision);
    if (is_timed) {
        const std::chrono::nanoseconds took = Clock::now() - began;
        context_->add_time(static_cast<std::int64_t>(took.count()));
    }
    return action;
}

void ActPath::record(const Decision& decision) {
    const std::size_t row = opening_.row + static_cast<std::size_t>(taken_);
    std::memcpy(columns_->action + row * columns_->action_bytes, chosen_by(decision), columns_->action_bytes);
    if (columns_->log_prob != nullptr) columns_->log_prob[row] = decision.log_prob;
    const float* remembered = decision.carry;
    for (const auto& [values, size] : carry_) {
        std::memcpy(values, remembered, size * sizeof(float));
        remembered += size;
    }
    ++taken_;
}

bool ActPath::reward(nb::handle value, nb::handle decision) {
    // First, because it may run code of the program.
    const double number = PyFloat_AsDouble(value.ptr());
    const std::int64_t given = decision.is_none() ? 0 : PyLong_AsLongLong(decision.ptr());
    if (PyErr_Occurred() != nullptr) {
        // Python says what is wrong with it.
        PyErr_Clear();
        return false;
    }
    const std::int64_t latest = opening_.first_decision + taken_ - 1;
    const std::int64_t index = decision.is_none() ? latest : given;
    // In the present segment, also before the path was opened.
    const std::int64_t first = opening_.first_decision - static_cast<std::int64_t>(opening_.row);
    if (index < first || index > latest || !is_free()) return false;
    if (!(std::abs(number) <= static_cast<double>(std::numeric_limits<float>::max()))) return false;
    columns_->reward[index - first] += static_cast<float>(number);
    return true;
}

}  // namespace rl4sys::python
