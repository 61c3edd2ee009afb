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

std::array<std::uint32_t, 2> key_words(std::uint64_t key) noexcept {
    return {static_cast<std::uint32_t>(key >> 32), static_cast<std::uint32_t>(key)};
}

nb::object unusual() {
    return nb::borrow(Py_NotImplemented);
}

}  // namespace

void watch_forks() {
    pthread_atfork(nullptr, nullptr, [] { ++forks; });
}

void noise_rows(const std::vector<std::uint64_t>& keys, const std::vector<std::uint64_t>& steps, nb::handle rows) {
    const ArrayObject* array = as_array(rows);
    if (array == nullptr || array->axes != 2 || keys.size() != steps.size()) {
        throw nb::value_error("Expected a key and a step for each row of an array [streams, size].");
    }
    const auto size = static_cast<std::size_t>(array->shape[1]);
    const ArraySpec row{"noise", ElementType::Float32, {static_cast<std::uint32_t>(size)}};
    auto* numbers = reinterpret_cast<float*>(rows_of(rows, row, keys.size(), true));
    for (std::size_t i = 0; i < keys.size(); ++i) {
        KeyedNoise(key_words(keys[i]), size).at(steps[i], numbers + i * size);
    }
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

nb::object Columns::first_step(const ActForm& form, nb::handle plan) const {
    const auto copied = [this](std::size_t index) {
        // The row of a column with one number per row is a copy already.
        nb::object row = nb::steal(PySequence_GetItem(arrays[index].ptr(), 0));
        return as_array(row) == nullptr ? row : nb::object(row.attr("copy")());
    };
    nb::dict observed, extras;
    const std::size_t inputs = observation.size();
    for (std::size_t i = 0; i < inputs; ++i) observed[form.name(i)] = copied(i);
    if (log_prob != nullptr) extras["log_prob"] = copied(inputs + 2);
    return nb::make_tuple(plan, observed, copied(inputs), extras);
}

ActPath::ActPath(std::shared_ptr<ActContext> context, std::uint64_t key)
    : context_(std::move(context)), key_(key_words(key)), noise_(key_, 0) {}

void ActPath::open(std::shared_ptr<ActForm> form, std::shared_ptr<RowPolicy> policy, std::shared_ptr<Columns> columns,
                   nb::tuple carry, nb::object plan, nb::object is_locked, Opening opening) {
    if (opening.row > columns->rows || opening.room > columns->rows - opening.row) {
        throw nb::value_error("Expected as many rows as there is room for decisions.");
    }
    noise_ = KeyedNoise(key_, policy->noise_size());
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
    plan_ = std::move(plan);
    is_locked_ = std::move(is_locked);
    opening_ = opening;
    taken_ = 0;
    begin_ = -1;
    forks_ = forks;
    is_open_ = true;
}

Taken ActPath::close() {
    is_open_ = false;
    plan_.reset();
    return {std::exchange(taken_, 0), std::exchange(begin_, -1)};
}

bool ActPath::is_free() const {
    return is_open_ && forks_ == forks && is_locked_().ptr() == Py_False;
}

nb::object ActPath::act(nb::handle observation, nb::handle mask, nb::handle now) {
    if (!is_open_ || !now.is_none()) return unusual();
    const bool is_timed = (opening_.first_decision + taken_) % context_->sampled == 0;
    using Clock = std::chrono::steady_clock;
    const Clock::time_point began = is_timed ? Clock::now() : Clock::time_point();
    Parts parts;
    // First, because other threads may run meanwhile.
    if (!form_->find(observation, mask, parts)) return unusual();
    const std::size_t row = rows_recorded();
    if (!is_free() || row == opening_.row + opening_.room) return unusual();
    if (begin_ >= 0 && taken_ >= opening_.takable) return unusual();
    if (context_->governor.attr("plan").ptr() != plan_.ptr()) return unusual();
    ActContext& scratch = *context_;
    scratch.rows.resize(columns_->observation.size());
    scratch.noise.resize(policy_->noise_size());
    scratch.memory.resize(policy_->carry_size());
    for (std::size_t i = 0; i < scratch.rows.size(); ++i) {
        scratch.rows[i] = columns_->observation[i].first + row * columns_->observation[i].second;
    }
    if (!form_->read(parts, scratch.rows.data())) return unusual();
    float* recalled = scratch.memory.data();
    for (const auto& [values, size] : carry_) {
        std::memcpy(recalled, values, size * sizeof(float));
        recalled += size;
    }
    noise_.at(opening_.step + static_cast<std::uint64_t>(taken_), scratch.noise.data());
    const Decision decision = policy_->decide(reinterpret_cast<const void* const*>(scratch.rows.data()),
                                              scratch.noise.data(), carry_.empty() ? nullptr : scratch.memory.data());
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
    const std::size_t row = rows_recorded();
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
    const std::int64_t first = latest + 1 - static_cast<std::int64_t>(rows_recorded());
    if (index < first || index > latest || !is_free()) return false;
    if (!(std::abs(number) <= static_cast<double>(std::numeric_limits<float>::max()))) return false;
    columns_->reward[index - first] += static_cast<float>(number);
    return true;
}

nb::object ActPath::take_step() {
    if (rows_recorded() != 1 || taken_ > opening_.takable || !carry_.empty() || !is_free()) {
        return unusual();
    }
    nb::object step = columns_->first_step(*form_, plan_);
    columns_->reward[0] = 0.0F;
    begin_ = taken_;
    opening_.row = 0;
    return step;
}

}  // namespace rl4sys::python
