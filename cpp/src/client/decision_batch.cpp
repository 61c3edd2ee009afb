#include "client/decision_batch.hpp"

#include <algorithm>
#include <cstring>

namespace rl4sys::client {

std::vector<Action> DecisionBatch::decide() {
    std::vector<std::size_t> waiting = rows_.observe();
    // A version may have arrived while the lanes were locked one after the other.
    while (!waiting.empty()) {
        const Snapshot* snapshot = &rows_[waiting.front()].lane->present_snapshot();
        const auto others = std::stable_partition(waiting.begin(), waiting.end(), [&](std::size_t row) {
            return &rows_[row].lane->present_snapshot() == snapshot;
        });
        decide({waiting.begin(), others});
        waiting.erase(waiting.begin(), others);
    }
    return rows_.finish();
}

void DecisionBatch::decide(const std::vector<std::size_t>& indices) {
    const Snapshot& snapshot = rows_[indices.front()].lane->present_snapshot();
    ThreadPolicy& policy = thread_policy(snapshot);
    const auto& observation = snapshot.form()->observation;
    const std::size_t noise_size = snapshot.interface->noise_size;
    const std::size_t carry_size = snapshot.interface->carry_size;
    std::vector<std::vector<std::byte>> inputs;
    for (const ArraySpec& spec : observation) {
        inputs.emplace_back(indices.size() * spec.bytes());
    }
    std::vector<float> noise(indices.size() * noise_size);
    std::vector<float> carry(indices.size() * carry_size);
    for (std::size_t row = 0; row < indices.size(); ++row) {
        Lane& lane = *rows_[indices[row]].lane;
        for (std::size_t place = 0; place < inputs.size(); ++place) {
            const std::size_t bytes = observation[place].bytes();
            std::memcpy(inputs[place].data() + row * bytes, lane.present_row(place), bytes);
        }
        lane.write_noise(noise.data() + row * noise_size);
        std::copy(lane.carry().begin(), lane.carry().end(), carry.data() + row * carry_size);
    }
    for (std::size_t place = 0; place < inputs.size(); ++place) {
        policy.rows[place] = inputs[place].data();
    }
    const Decisions decisions = policy.policy.decide_rows(indices.size(), policy.rows.data(), noise.data(),
                                                          carry.empty() ? nullptr : carry.data());
    const std::size_t action_size = policy.policy.action_size();
    for (std::size_t row = 0; row < indices.size(); ++row) {
        Decision decision;
        decision.outcome = decisions.outcomes[row];
        decision.choices = decisions.choices == nullptr ? nullptr : decisions.choices + row * action_size;
        decision.numbers = decisions.numbers == nullptr ? nullptr : decisions.numbers + row * action_size;
        decision.log_prob = decisions.log_probs[row];
        decision.carry = decisions.carry == nullptr ? nullptr : decisions.carry + row * carry_size;
        const BatchRow& each = rows_[indices[row]];
        rows_.decided(indices[row], each.lane->take_decision(decision, *each.observation, each.mask));
    }
}

}  // namespace rl4sys::client
