/// @file
/// What a client needs to know: who it is, where the server is, what is to be learned and how much may be kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "rl4sys/arrays.hpp"
#include "rl4sys/policy_spec.hpp"

namespace rl4sys {

/// A client's settings cannot be used; the message says which, and what would do.
class SettingsError : public std::invalid_argument {
public:
    using std::invalid_argument::invalid_argument;
};

/// What happens to experience for which there is no room.
enum class Overflow : std::uint8_t {
    /// Whoever recorded it waits until there is.
    Block,
    /// The oldest that is not on its way makes way.
    DropOldest,
    /// It is dropped itself.
    DropNewest,
};

/// Files (PEM) that make the connection safe.
struct Tls {
    /// Who vouches for the server; absent for those whom the system trusts.
    std::optional<std::filesystem::path> ca;
    /// What the client shows, where the server asks for it; goes with `key`.
    std::optional<std::filesystem::path> cert;
    std::optional<std::filesystem::path> key;
};

/// Everything that `connect` reads. The names are those of the config file.
struct ClientSettings {
    /// Names the client for ever; its experience is known by it.
    std::string client_id;
    /// `host:port` or `unix:/path/of/socket`.
    std::string server = "127.0.0.1:50051";
    /// Shown to the server with every call; from `token` or the first line of `token_file`.
    std::string token;
    /// Where it came from, if from a file, which is read again when it changes.
    std::optional<std::filesystem::path> token_file;
    std::optional<Tls> tls;
    /// Let a token travel unencrypted to another machine.
    bool insecure = false;
    /// Clients that name the same policy share its learner; empty for one of its own.
    std::string policy_id;
    /// The algorithm to learn with; empty to do as the learner or the server does already.
    std::string algorithm;
    /// Of the learner, as the text of one JSON object: its sections `algorithm`, `network` and `buffer`, and its
    /// `seed`.
    std::string parameters_json;
    /// The name of an experiment that the server offers, instead of an algorithm.
    std::string experiment;
    std::vector<ArraySpec> observation;
    std::optional<ActionSpec> action;
    /// Seconds that `connect` waits for the server, and that each call may take.
    double timeout = 10.0;
    /// Where unsent experience is kept, so that it survives a killed client; absent to keep it in memory.
    std::optional<std::filesystem::path> outbox;
    /// What may wait to be sent. More survives a longer absence of the server.
    std::size_t outbox_bytes = std::size_t{64} << 20;
    /// What makes way when that is full. With `Block`, and with nothing else, `act` and `end` can have to wait.
    Overflow overflow = Overflow::DropOldest;
    /// Where the newest policy is kept, to start from when the server is away.
    std::optional<std::filesystem::path> cache;
    /// Steps after which experience is sent though the episode goes on. More means fewer, later and larger pieces.
    std::size_t max_segment_length = 256;
    /// Newest decisions of an episode that wait for late rewards. More waits longer before experience is sent.
    std::size_t reward_window = 16;
    /// Seconds that experience waits for company before it is sent. More makes fewer, larger messages.
    double send_interval = 0.2;
    /// Episodes after whose end experience is sent sooner than that.
    std::optional<std::uint64_t> send_frequency;
    /// Of the policy's chance and of the learner. Absent: the policy's is another one at every start.
    std::optional<std::uint64_t> seed;
};

/// Settings from a JSON file, in the present shape or in either of the original ones. @throws SettingsError
ClientSettings load_settings(const std::filesystem::path& file);

/// Settings from the text of a JSON object; relative paths are below `directory`. @throws SettingsError
ClientSettings parse_settings(std::string_view json, const std::filesystem::path& directory = {});

/// The array that says which choices are allowed; none where actions are real numbers.
std::vector<ArraySpec> mask_for(const ActionSpec& action);

/// The observation that says which choices are allowed.
inline constexpr std::string_view mask_name = "action_mask";
/// The name of an observation that is a single array.
inline constexpr std::string_view observation_name = "observation";

}  // namespace rl4sys
