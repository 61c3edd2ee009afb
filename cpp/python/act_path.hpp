/// The common case of a decision in one call: read the observation, decide, record.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "act_form.hpp"
#include "rl4sys/noise.hpp"
#include "row_policy.hpp"

namespace rl4sys::python {

/// What the paths of all lanes of an agent share.
struct ActContext {
    nb::object governor;   ///< Its attribute `plan` is the present plan.
    nb::object add_time;   ///< Called with the nanoseconds of one decision in `sampled`.
    std::int64_t sampled;  ///< One decision of so many is timed.
    /// Of the decision that is being taken: there is one at a time.
    std::vector<float> noise, memory;
    std::vector<char*> rows;
};

/// The columns of a segment buffer.
struct Columns {
    /// Arrays in the order of the policy's inputs, then the action, the reward, and the log-probability or None.
    Columns(const ActForm& form, nb::tuple observation, nb::object action, nb::object reward, nb::object log_prob);

    /// A copy of the first row: (plan, observation, action, extras).
    nb::object first_step(const ActForm& form, nb::handle plan) const;

    std::vector<nb::object> arrays;  ///< Keeps them alive: observations, action, reward, log-probability.
    std::vector<std::pair<char*, std::size_t>> observation;
    char* action;
    std::size_t action_bytes;
    float* reward;
    float* log_prob;
    std::size_t rows;
};

/// Where an open path begins.
struct Opening {
    std::size_t row, room;
    std::int64_t first_decision;
    std::uint64_t step;
    std::int64_t takable;  ///< So many decisions may be taken out of the record one by one, with `take_step`.
};

/// What the record takes over from a path.
struct Taken {
    std::int64_t decisions;
    std::int64_t begin;  ///< After so many of them the segment begins, since `take_step` took out the others; else -1.
};

/// Acts for one lane while nothing unusual happens: between `open` and `close` the next `room` rows of the columns, and
/// the memory, belong to it. Protected by Python's global lock; Python code that changes the record closes it first.
class ActPath {
public:
    /// `key`: both words of the key of the stream's random numbers.
    ActPath(std::shared_ptr<ActContext> context, std::uint64_t key);

    void open(std::shared_ptr<ActForm> form, std::shared_ptr<RowPolicy> policy, std::shared_ptr<Columns> columns,
              nb::tuple carry, nb::object plan, nb::object is_locked, Opening opening);
    /// What happened since `open`, or since the last `close`.
    Taken close();
    std::int64_t taken() const noexcept { return taken_; }

    /// The action; NotImplemented, with nothing recorded, where there is more to do than in the common case.
    nb::object act(nb::handle observation, nb::handle mask, nb::handle now);
    /// Add to the reward of the latest decision, or of that with this number; false if it is not one of this path.
    bool reward(nb::handle value, nb::handle decision);
    /// Take the latest decision out of the record, if it is the only one there: (plan, observation, action, extras).
    /// NotImplemented, with nothing changed, where there is more to do.
    nb::object take_step();

private:
    bool is_free() const;
    /// Rows of the present segment that are recorded.
    std::size_t rows_recorded() const noexcept {
        return opening_.row + static_cast<std::size_t>(begin_ < 0 ? taken_ : taken_ - begin_);
    }
    void record(const Decision& decision);

    std::shared_ptr<ActContext> context_;
    std::array<std::uint32_t, 2> key_;
    std::shared_ptr<ActForm> form_;
    std::shared_ptr<RowPolicy> policy_;
    std::shared_ptr<Columns> columns_;
    nb::object carry_arrays_;
    std::vector<std::pair<float*, std::size_t>> carry_;
    nb::object plan_, is_locked_;
    KeyedNoise noise_;
    Opening opening_{};
    std::int64_t taken_ = 0, begin_ = -1;
    std::uint64_t forks_ = 0;
    bool is_open_ = false;
};

/// Write the noise of one step of each stream, whose numbers are a row: `rows` is an array [streams, size].
/// @throws ValueError (for Python) unless there are as many keys, steps and rows.
void noise_rows(const std::vector<std::uint64_t>& keys, const std::vector<std::uint64_t>& steps, nb::handle rows);

/// Counts forks in the child, so that a path that was opened in the parent is left alone.
void watch_forks();

}  // namespace rl4sys::python
