/// @file
/// The settings of a client: its identity, the server, the algorithm, the spaces, and limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "rl4sys/acting_mode.hpp"
#include "rl4sys/action_structure.hpp"
#include "rl4sys/arrays.hpp"
#include "rl4sys/bad_input.hpp"
#include "rl4sys/decision_place.hpp"
#include "rl4sys/policy_spec.hpp"
#include "rl4sys/reward_window.hpp"

namespace rl4sys {

/// By array: one number for all its values, or as many as it has, NaN for those without a default.
using FeatureDefaults = std::map<std::string, std::vector<double>>;

/// The settings of a client are invalid; the message says which, and what was expected.
class SettingsError : public std::invalid_argument {
public:
    using std::invalid_argument::invalid_argument;
};

/// What happens to new experience when the outbox is full.
enum class Overflow : std::uint8_t {
    /// The recording thread waits until it fits.
    Block,
    /// The oldest unsent experience is dropped.
    DropOldest,
    /// The new experience is dropped.
    DropNewest,
};

/// PEM files for a TLS connection.
struct Tls {
    /// Certificate authority of the server; absent for those that the system trusts.
    std::optional<std::filesystem::path> ca;
    /// Client certificate, for servers that require one; needs `key`.
    std::optional<std::filesystem::path> cert;
    std::optional<std::filesystem::path> key;
};

/// All settings that `connect` reads. The names are those of the config file.
struct ClientSettings {
    /// The permanent name of the client; its experience is stored under it.
    std::string client_id;
    /// `host:port` or `unix:/path/of/socket`.
    std::string server = "127.0.0.1:50051";
    /// Sent with every call; from `token` or the first line of `token_file`.
    std::string token;
    /// The file of the token. It is read again when it changes.
    std::optional<std::filesystem::path> token_file;
    std::optional<Tls> tls;
    /// Allow a token to be sent to another machine unencrypted.
    bool insecure = false;
    /// Clients with the same policy_id share one learner; empty for a learner of its own.
    std::string policy_id;
    /// The algorithm to learn with; empty for that of the existing learner or the server's default.
    std::string algorithm;
    /// Parameters of the learner as one JSON object: its sections `algorithm`, `network` and `buffer`, and its
    /// `seed`.
    std::string parameters_json;
    /// The name of an experiment that the server offers, instead of an algorithm.
    std::string experiment;
    std::vector<ArraySpec> observation;
    std::optional<ActionSpec> action;
    /// The named or nested parts of the action, which `Action::part` then gives; null if it has none.
    std::shared_ptr<const ActionStructure> action_structure;
    /// Seconds that `connect` waits for the server; given a cached policy or a fallback, only while it may answer.
    double timeout = 10.0;
    /// Seconds that each call may take; absent: as many as `timeout`.
    std::optional<double> call_timeout;
    /// Seconds that `close` sends what is not sent yet; it gives up at once when the server cannot be reached.
    double close_timeout = 10.0;
    /// Directory for unsent experience, so that it survives a killed client; absent to keep it in memory.
    std::optional<std::filesystem::path> outbox;
    /// Most bytes of unsent experience. More bridges a longer outage of the server.
    std::size_t outbox_bytes = std::size_t{64} << 20;
    /// What happens when the outbox is full. Only with `Block` can `act` and `end` have to wait.
    Overflow overflow = Overflow::DropOldest;
    /// Directory for the newest policy, to start from while the server is unreachable.
    std::optional<std::filesystem::path> cache;
    /// Most steps of one segment. More means fewer, later and larger segments.
    std::size_t max_segment_length = 256;
    /// Newest decisions of an episode that can still receive rewards, or a time such as `30s`. More delays sending.
    RewardWindow reward_window;
    /// Most seconds that experience waits before it is sent. More makes fewer, larger messages.
    double send_interval = 0.2;
    /// Send sooner, after this many ended episodes.
    std::optional<std::uint64_t> send_frequency;
    /// While this file exists, the policy is off: the fallback decides.
    std::optional<std::filesystem::path> kill_file;
    /// Seconds after which the policy is off if nothing was heard of the server, until it is heard again.
    std::optional<double> lease;
    /// `explore` (act, record and learn), `exploit` (act with the best guess and record nothing) or `observe` (the
    /// fallback acts, and the policy is compared with it).
    ActingMode mode = ActingMode::Explore;
    /// `local` (the client decides with a copy of the policy) or `server` (each decision asks the server, and the
    /// fallback decides when it does not answer in time).
    DecisionPlace decide = DecisionPlace::Local;
    /// Most seconds that `act` waits for the server with `decide: server`. More tolerates a slower server.
    double decide_timeout = 0.1;
    /// What `act` does with an observation that has NaN, infinity, a missing array or a wrong shape, or for which the
    /// policy's decision is not finite. Absent: the fallback if there is one, else raise.
    std::optional<BadInputChoice> on_bad_input;
    /// Values of arrays that an observation leaves out and of features that are NaN, by array.
    FeatureDefaults defaults;
    /// Seed of the exploration noise and of the learner. Absent: another noise at every start.
    std::optional<std::uint64_t> seed;

    /// Seconds that each call may take.
    double call_seconds() const { return call_timeout.value_or(timeout); }
};

/// Settings from a JSON file, with the present names or those of the original configs. @throws SettingsError
ClientSettings load_settings(const std::filesystem::path& file);

/// Settings from the text of a JSON object; paths are relative to `directory`. @throws SettingsError
ClientSettings parse_settings(std::string_view json, const std::filesystem::path& directory = {});

/// The array of the action mask; none for continuous actions.
std::vector<ArraySpec> mask_for(const ActionSpec& action);

/// The name of the action mask among the observations.
inline constexpr std::string_view mask_name = "action_mask";
/// The observation of rows of which a policy chooses one, and the one that counts them.
inline constexpr std::string_view candidates_name = "candidates", candidate_count_name = "candidate_count";
/// The name of an observation that is one unnamed array.
inline constexpr std::string_view observation_name = "observation";

}  // namespace rl4sys
