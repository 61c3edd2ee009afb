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
};

/// The columns of a segment buffer.
struct Columns {
    /// Arrays in the order of the policy's inputs, then the action, the reward, and the log-probability or None.
    Columns(const ActForm& form, nb::tuple observation, nb::object action, nb::object reward, nb::object log_prob);

    std::vector<nb::object> arrays;  ///< Keeps them alive.
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
};

/// Acts for one lane while nothing unusual happens: between `open` and `close` the next `room` rows of the columns, and
/// the memory, belong to it. Protected by Python's global lock; Python code that changes the record closes it first.
class ActPath {
public:
    /// `key`: both words of the key of the stream's random numbers.
    ActPath(std::shared_ptr<ActContext> context, std::uint64_t key);

    void open(std::shared_ptr<ActForm> form, std::shared_ptr<RowPolicy> policy, std::shared_ptr<Columns> columns,
              nb::tuple carry, nb::object plan, nb::object is_locked, Opening opening);
    /// Decisions since `open`, or since the last `close`; the record takes them over.
    std::int64_t close();
    std::int64_t taken() const noexcept { return taken_; }

    /// The action; NotImplemented, with nothing recorded, where there is more to do than in the common case.
    nb::object act(nb::handle observation, nb::handle mask, nb::handle now);
    /// Add to the reward of the latest decision, or of that with this number; false if it is not one of this path.
    bool reward(nb::handle value, nb::handle decision);

private:
    bool is_free() const;
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
    std::vector<float> numbers_, memory_;
    std::vector<char*> rows_;
    Opening opening_{};
    std::int64_t taken_ = 0;
    std::uint64_t forks_ = 0;
    bool is_open_ = false;
};

/// Counts forks in the child, so that a path that was opened in the parent is left alone.
void watch_forks();

}  // namespace rl4sys::python
