/// @file
/// The health of an agent, for operators.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rl4sys {

/// The state of an agent at one point in time.
struct Health {
    /// Whether the last call to the server succeeded.
    bool connected = false;
    /// The learner that trains this policy; empty before the first policy.
    std::string learner;
    /// The version of the weights in use; absent before the first policy.
    std::optional<std::uint64_t> version;
    /// Seconds since that version arrived.
    std::optional<double> age;
    /// Actions chosen by the policy since the start.
    std::uint64_t decisions = 0;
    /// Actions chosen by the fallback.
    std::uint64_t fallback_decisions = 0;
    /// Decisions that the system took by itself and reported with `took`.
    std::uint64_t incumbent_decisions = 0;
    /// With `decide: server`: decisions that the server did not answer in time, or for which it was not asked because
    /// it had not answered just before. The fallback took them.
    std::uint64_t unanswered_decisions = 0;
    std::uint64_t open_episodes = 0;
    /// Segments waiting to be sent or acknowledged.
    std::uint64_t backlog = 0;
    std::uint64_t backlog_bytes = 0;
    /// Segments that the server has stored.
    std::uint64_t acknowledged = 0;
    /// `explore`, `exploit` or `observe`.
    std::string mode;
    /// Why the policy does not decide: `control`, `kill_file`, `lease` or `no_policy`; empty if it does.
    std::string off;
    /// The latest order of an operator: `follow`, `frozen` or `off`, with its author and reason.
    std::string control;
    /// The sequence of that order; 0 if there was none.
    std::uint64_t control_sequence = 0;
    /// The share of episodes that the server asked to record.
    double record_share = 1.0;
    /// Decisions of the fallback with which the policy was compared, in `mode: observe`.
    std::uint64_t observed_decisions = 0;
    /// How many of these the policy would have taken, too.
    std::uint64_t agreed_decisions = 0;
    /// A histogram of a sample of decisions: bucket i counts those of less than 2^i microseconds.
    std::vector<std::uint64_t> decision_time;
    /// What the server says is wrong with this client, such as another program with the same client_id; empty if
    /// nothing is.
    std::string warning;
    /// Segments that will never be sent, by reason; under `no_final_observation` and `schema_changed`, decisions.
    std::map<std::string, std::uint64_t> drops;
    /// Rewards for decisions that were sealed already.
    std::uint64_t late_rewards = 0;
    /// Patches that failed verification; the weights were then pulled in full.
    std::uint64_t damaged_patches = 0;
    /// The history of weights that the version belongs to; empty from servers that know no lineages.
    std::string lineage;
    /// Why the versions of the server are not followed, and nothing is recorded; empty if they are.
    std::string lineage_problem;
    /// Versions that were not taken, because they were older than the present one or an operator froze it.
    std::uint64_t versions_not_taken = 0;
    /// Observations that could not be used: NaN, infinity, a missing array, a wrong shape, or a decision like that.
    std::uint64_t bad_inputs = 0;
    /// Observations in which a default stood for an array that was left out or for a feature that was NaN.
    std::uint64_t defaulted_inputs = 0;
    /// Episodes, or spans of long ones, that were not recorded because the learner cannot use all of them in time.
    std::uint64_t thinned_episodes = 0;
    /// Actions that were not recorded.
    std::uint64_t unrecorded_decisions = 0;
    /// What runs the policy: the kernel set of this machine, such as `native-avx2`.
    std::string runtime;
    /// The error of the last failed call; empty if there was none.
    std::string last_error;
    /// Why nothing is sent or received at present: the server refuses this client, or a thread died; empty otherwise.
    std::string stopped;
};

}  // namespace rl4sys
