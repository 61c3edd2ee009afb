/// The calls of a client and the transport that carries them: gRPC, or a fake in tests.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rl4sys/acting_mode.hpp"
#include "rl4sys/arrays.hpp"
#include "rl4sys/policy_spec.hpp"
#include "rl4sys/weights.hpp"
#include "wire/errors.hpp"
#include "wire/failures.hpp"
#include "wire/segment_format.hpp"

namespace rl4sys::wire {

/// The protocol version that this client speaks.
inline constexpr std::uint32_t protocol = 1;

/// How a call failed, by the numbers of the gRPC status codes.
enum class Code : std::uint8_t {
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    Unauthenticated = 16,
};

/// A call failed: the code and the failure are for programs, the message is for people.
class CallFailed : public std::runtime_error {
public:
    CallFailed(Code call_code, const std::string& message, Failure details = {})
        : std::runtime_error(message), code(call_code), failure(details) {}

    Code code;
    Failure failure;
};

/// A stream ended because the process forked; it may be opened again at once.
class CallInterrupted : public CallFailed {
public:
    CallInterrupted() : CallFailed(Code::Cancelled, "The process forked.") {}
};

/// An order of an operator.
struct Control {
    int mode = 0;  ///< What clients have to do, by the numbers of the proto.
    std::uint64_t sequence = 0;
    std::string reason;
    std::string ordered_by;
};

/// The request to join: client, policy, algorithm, spaces, and what this client can run.
struct JoinRequest {
    std::string client;
    std::string policy_id;
    std::string algorithm;  ///< Empty if an experiment is named, or neither.
    std::string parameters_json;
    std::string experiment;
    std::vector<ArraySpec> observation;
    std::optional<ActionSpec> action;
    std::vector<std::string> ops;
    std::vector<HeadKind> heads;
    std::string software;
    std::uint64_t epoch = 0;
    std::string lineage;                ///< Of the policy that the client acts with; empty for none.
    std::optional<std::uint64_t> have;  ///< The version of that policy.
    ActingMode mode = ActingMode::Explore;
};

/// The limits of the server; 0 where it did not set one.
struct Limits {
    std::uint32_t max_message_bytes = 0;
    std::uint32_t max_segment_steps = 0;
    std::uint32_t max_push_segments = 0;
    std::uint32_t max_outstanding_segments = 0;
    std::uint32_t max_act_rows = 0;
    std::uint32_t max_pack_segments = 0;
};

/// The session that was opened.
struct JoinReply {
    std::uint32_t protocol = wire::protocol;
    std::string learner;
    std::string session;
    SegmentFormat schema;
    std::string schema_hash;
    std::optional<PolicySpec> explore;  ///< Absent when the policy runs only on the server.
    std::uint64_t version = 0;
    Limits limits;
    std::string lineage;                         ///< Empty from servers that know no lineages.
    std::vector<std::string> replaced_lineages;  ///< Those that an operator replaced by this one.
    std::optional<PolicySpec> exploit;           ///< Absent if it cannot be sent.
    std::optional<Control> control;
    double report_seconds = 0.0;  ///< 0 if the server takes no reports.
    double record_share = 0.0;    ///< 0 stands for 1.
    bool accepts_fallback = false;
    bool accepts_zstd = false;  ///< Whether pushed segments may be zstd frames.
    bool accepts_incumbent = false;
    std::optional<ActionSpec> action;             ///< For clients that call Act and so get no policy.
    std::optional<SegmentFormat> exploit_schema;  ///< The arrays of Act with the exploit policy, where that decides.
};

struct PushedSegment {
    std::uint64_t sequence = 0;
    std::string segment;
    std::uint32_t uncompressed_bytes = 0;  ///< If not 0, `segment` is a zstd frame of so many bytes.
    std::uint32_t count = 0;               ///< If above 1, it is a pack of so many segments.
};

/// Segments of one epoch, all of one schema.
struct PushRequest {
    std::string session;
    std::uint64_t epoch = 0;
    std::string schema_hash;
    std::vector<PushedSegment> segments;
};

/// Sequence numbers `first` to `last`, both included.
struct SequenceRange {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
};

/// A segment that is refused permanently.
struct Refusal {
    std::uint64_t sequence = 0;
    std::string reason;  ///< Such as "not_finite"; "refused" for a reason that this version does not know.
    std::string message;
    std::uint32_t count = 0;  ///< Segments from `sequence` on that it is about; 0 for one.
};

/// The result of one Push. Segments in neither list are sent again.
struct PushReply {
    std::vector<SequenceRange> acknowledged;
    std::vector<Refusal> refused;
    std::uint32_t retry_after_ms = 0;
    std::uint64_t version = 0;
    double record_share = 0.0;
};

struct PullRequest {
    std::string session;
    std::optional<std::uint64_t> have;
};

struct WatchRequest {
    std::string session;
    std::uint64_t have = 0;
    std::uint32_t max_patch_bytes = 0;
    bool control = false;  ///< Whether orders of operators are wanted, too.
};

/// A patch without its payload.
struct PatchHeader {
    std::optional<std::uint64_t> base;
    std::uint64_t target = 0;
    int encoding = 0;
    std::uint64_t size = 0;
    std::string sha256;
    std::uint64_t payload_bytes = 0;
};

/// A chunk of a patch; the first has the header.
struct PatchChunk {
    std::optional<PatchHeader> header;
    std::string payload;
};

/// A version was published, or an operator gave an order.
struct NewVersion {
    std::uint64_t version = 0;
    std::optional<PatchChunk> patch;
    std::optional<Control> control;  ///< If there is one, the message is about nothing else.
    double record_share = 0.0;       ///< 0 for no change.
};

/// The health of a client, as it is reported. Counters start with the client's process.
struct ClientReport {
    std::optional<std::uint64_t> version;
    std::string lineage;
    std::string mode;
    std::uint64_t control_sequence = 0;
    std::string off;  ///< Why the policy does not decide; empty if it does.
    std::uint64_t decisions = 0;
    std::uint64_t fallback_decisions = 0;
    std::uint64_t bad_inputs = 0;
    std::uint64_t unanswered_decisions = 0;
    std::uint64_t thinned_episodes = 0;
    std::uint64_t open_episodes = 0;
    std::uint64_t backlog_segments = 0;
    std::uint64_t backlog_bytes = 0;
    std::map<std::string, std::uint64_t> drops;
    std::uint64_t late_rewards = 0;
    std::vector<std::uint64_t> decision_time;  ///< Bucket i: decisions of less than 2^i microseconds.
    std::string last_error;
    double uptime_seconds = 0.0;
};

/// Messages and their bytes in each direction, without what HTTP/2 and TLS add.
struct Traffic {
    std::uint64_t sent_messages = 0;
    std::uint64_t sent_bytes = 0;
    std::uint64_t received_messages = 0;
    std::uint64_t received_bytes = 0;
};

/// An order to measure what the client costs.
struct ProfileOrder {
    std::uint64_t sequence = 0;
    double seconds = 0.0;
    std::uint64_t seed = 0;
};

/// One block of a profile: a level for some seconds.
struct ProfileBlock {
    std::uint32_t round = 0;
    std::string level;
    double seconds = 0.0;
    std::uint64_t decisions = 0;
    double cpu_seconds = 0.0;
    double background_cpu_seconds = 0.0;
    std::uint64_t memory_bytes = 0;
    std::uint64_t waits = 0;
    std::uint64_t preemptions = 0;
    Traffic traffic;
    std::uint64_t backlog_segments = 0;
    std::uint64_t backlog_bytes = 0;
    std::optional<double> version_age_seconds;
    std::uint64_t longest_nanoseconds = 0;
    std::map<std::uint32_t, std::uint64_t> times;  ///< By the whole part of 32 log2(nanoseconds).
};

/// What a client has measured.
struct ProfileProgress {
    std::uint64_t sequence = 0;
    std::uint32_t first_block = 0;     ///< The number of the first of `blocks`.
    std::vector<ProfileBlock> blocks;  ///< Those that no reply has acknowledged.
    bool is_complete = false;
    std::string problem;
    std::optional<std::uint64_t> floor_nanoseconds;
};

struct ReportRequest {
    std::string session;
    std::uint64_t epoch = 0;
    ClientReport report;
    std::optional<ProfileProgress> profile;
};

/// What a client has to know between two reports.
struct ReportReply {
    std::optional<Control> control;
    double record_share = 0.0;
    std::string warning;
    std::uint64_t version = 0;
    std::optional<ProfileOrder> profile;
};

/// Observations to decide on, one row for each stream.
struct ActRequest {
    std::string session;
    std::string schema_hash;
    std::uint32_t rows = 0;
    std::string agent;
    std::uint64_t lane = 0;  ///< Of the first row; of row i it is lane + i, unless `lanes` has others.
    std::uint64_t step = 0;  ///< Of every row, unless `steps` has others.
    std::vector<std::string> observation;
    std::vector<std::string> carry;
    std::vector<std::uint64_t> lanes;
    std::vector<std::uint64_t> steps;
};

/// The decisions, as bytes in the order of the schema.
struct ActReply {
    std::uint64_t version = 0;
    std::string action;
    std::vector<std::string> extras;
    std::vector<std::string> carry;
};

/// Messages of one call.
template <typename Message>
class Stream {
public:
    virtual ~Stream() = default;
    /// Wait for the next message; nothing at the end, or once cancelled. @throws CallFailed when the connection is
    /// lost.
    virtual std::optional<Message> next() = 0;
    /// End the stream; any thread may do so.
    virtual void cancel() noexcept = 0;
};

/// Carries calls to a training service. Every method may be called from any thread and throws `CallFailed`, or
/// `ContractViolation` for an invalid reply.
class Transport {
public:
    virtual ~Transport() = default;
    virtual JoinReply join(const JoinRequest& request, double timeout) = 0;
    virtual PushReply push(const PushRequest& request, double timeout) = 0;
    /// The patch to a newer version, in chunks.
    virtual std::unique_ptr<Stream<PatchChunk>> pull(const PullRequest& request, double timeout) = 0;
    /// New versions as they are published. Keepalive, not a deadline, ends the stream when the server is gone.
    virtual std::unique_ptr<Stream<NewVersion>> watch(const WatchRequest& request) = 0;
    /// Decide on the server.
    virtual ActReply act(const ActRequest& request, double timeout) = 0;
    virtual ReportReply report(const ReportRequest& request, double timeout) = 0;
    /// What went over the connection so far; nothing where that is not counted.
    virtual Traffic traffic() const { return {}; }
    /// Close the connection; pending and later calls fail as `Cancelled`.
    virtual void close() noexcept = 0;
};

}  // namespace rl4sys::wire
