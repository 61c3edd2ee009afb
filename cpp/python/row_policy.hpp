/// A policy program for rows of numpy arrays, with a chosen set of kernels.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "numpy_array.hpp"
#include "policy/plan.hpp"

namespace rl4sys::python {

/// The sets of kernels that this machine can run, by name; the fastest comes first.
std::vector<std::string> kernel_sets();

/// The choices or numbers of a decision, as they are recorded.
inline const void* chosen_by(const Decision& decision) noexcept {
    return decision.choices != nullptr ? static_cast<const void*>(decision.choices) : decision.numbers;
}

/// Decides for rows of arrays. Not thread-safe: give each thread its own.
class RowPolicy {
public:
    /// @throws BadPolicy, or ValueError (for Python) if there is no such set of kernels here.
    RowPolicy(nb::dict spec, const std::string& kernels);

    /// Use these flat weights from the next decision on; they are copied.
    void load(nb::handle weights);
    const PolicySpec& spec() const noexcept { return plan_->spec(); }
    std::size_t noise_size() const noexcept { return noise_size_; }
    std::size_t carry_size() const noexcept { return plan_->carry_size(); }
    Decision decide(const void* const* observation, const float* noise, const float* carry) noexcept {
        return plan_->decide(observation, noise, carry);
    }

    /// Decide for rows `first` to `first + count` of the observation columns, in the order of the program's inputs.
    /// `noise`, `carry` (None at the start of episodes), and what is written have `count` rows. Returns whether every
    /// row is decided; `outcomes` says why one is not.
    bool decide_rows(nb::tuple observation, std::size_t first, std::size_t count, nb::handle noise, nb::handle carry,
                     nb::handle action, nb::handle log_prob, nb::tuple next_carry, nb::handle outcomes);

private:
    /// Rows of one array.
    struct Column {
        const char* data;
        std::size_t bytes;

        const char* row(std::size_t number) const noexcept { return data + number * bytes; }
    };
    /// What decisions read.
    struct Batch {
        std::vector<Column> observation, carry;
    };

    Batch batch_of(nb::tuple observation, std::size_t first, std::size_t count, nb::handle carry) const;
    Decision decide_row(const Batch& batch, std::size_t row, const float* noise) noexcept;

    std::unique_ptr<detail::Plan> plan_;
    std::size_t noise_size_;
    ArraySpec action_;
    std::vector<ArraySpec> carry_;
    std::vector<const void*> rows_;
    std::vector<float> memory_;
};

}  // namespace rl4sys::python
