#include "client/shared_session.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace rl4sys::client {
namespace {

using wire::CallFailed;
using wire::Code;
using wire::ContractViolation;

constexpr std::size_t least_message = std::size_t{64} << 10;
constexpr std::size_t largest_message = std::size_t{4} << 20;
// Bytes of a message beyond the values of a segment: names, numbers, and the slack of `Delivery`.
constexpr std::size_t message_slack = std::size_t{8} << 10;
constexpr std::size_t per_array = 16;
constexpr std::size_t per_row = 24;
constexpr std::size_t otherwise_steps = std::size_t{1} << 16;

/// Most segments of one request, the only one outstanding at a time; a limit of 0 is not set.
std::size_t most_segments(const wire::Limits& limits) {
    const std::uint32_t pushed = limits.max_push_segments == 0 ? 1 : limits.max_push_segments;
    return std::min(pushed, limits.max_outstanding_segments == 0 ? pushed : limits.max_outstanding_segments);
}

std::size_t row_bytes(const std::vector<ArraySpec>& arrays) {
    return std::accumulate(arrays.begin(), arrays.end(), std::size_t{0},
                           [](std::size_t sum, const ArraySpec& array) { return sum + array.bytes(); });
}

/// How many steps of a segment fit into one message: few where observations are images.
std::size_t steps_of_a_message(const wire::SegmentFormat& form, std::size_t message_bytes) {
    const std::size_t seen = row_bytes(form.observation);
    const std::size_t step = seen + form.action.bytes() + sizeof(float) + row_bytes(form.extras);
    const std::size_t arrays = form.observation.size() + form.extras.size() + form.carry.size();
    const std::size_t besides = seen + row_bytes(form.carry) + message_slack + per_array * arrays;
    if (message_bytes < besides + step) {
        throw CallFailed(Code::InvalidArgument,
                         "One step takes " + std::to_string(step + besides) +
                             " bytes with the observations before and after it; a message holds " +
                             std::to_string(message_bytes) + ". Observe less, or in a smaller type such as uint8.");
    }
    return (message_bytes - besides) / step;
}

/// How many rows of a question, or of its answer, fit into one message.
std::size_t rows_of_a_message(const wire::SegmentFormat& form, std::size_t message_bytes) {
    const std::size_t row =
        row_bytes(form.observation) + form.action.bytes() + row_bytes(form.extras) + row_bytes(form.carry) + per_row;
    return std::max<std::size_t>(1, (message_bytes - message_slack) / row);
}

/// The action of a policy that is not sent.
ActionSpec asked_action(const wire::JoinReply& reply, const ClientSettings& settings) {
    if (reply.action) {
        return *reply.action;
    }
    if (!settings.action) {
        throw CallFailed(Code::Unimplemented,
                         "The server does not say which actions the learner has. Upgrade it, or give `action` in the "
                         "config.");
    }
    return *settings.action;
}

std::vector<ArraySpec> without_mask(std::vector<ArraySpec> arrays) {
    arrays.erase(
        std::remove_if(arrays.begin(), arrays.end(), [](const ArraySpec& array) { return array.name == mask_name; }),
        arrays.end());
    return arrays;
}

wire::JoinRequest join_request(const ClientSettings& settings, std::uint64_t epoch) {
    wire::JoinRequest request;
    request.client = settings.client_id;
    request.policy_id = settings.policy_id;
    request.algorithm = settings.algorithm;
    request.parameters_json = settings.parameters_json;
    request.experiment = settings.experiment;
    request.observation = settings.observation;
    request.action = settings.action;
    if (settings.decide == DecisionPlace::Local) {
        // Without ops the server sends no policy, whatever it is made of, and decides.
        request.ops = known_ops();
        std::sort(request.ops.begin(), request.ops.end());
        request.heads = known_heads();
    }
    request.software = std::string("rl4sys-cpp/" RL4SYS_VERSION " (native-") + kernel_set() + ")";
    request.epoch = epoch;
    request.mode = settings.mode;
    return request;
}

}  // namespace

OpenSession::OpenSession(wire::JoinReply reply, const ClientSettings& settings) {
    const bool asks = settings.decide == DecisionPlace::Server;
    if (reply.protocol != wire::protocol) {
        throw CallFailed(Code::FailedPrecondition,
                         "The server speaks protocol " + std::to_string(reply.protocol) + "; this client speaks " +
                             std::to_string(wire::protocol) + ". Upgrade the older one.",
                         {wire::FailureReason::Protocol, 0});
    }
    if (!asks && !reply.explore) {
        throw CallFailed(Code::Unimplemented,
                         "The policy of learner '" + reply.learner +
                             "' decides only on the server: set decide: server, or choose an algorithm whose policy "
                             "runs in clients, such as PPO or DQN.");
    }
    const std::size_t message_bytes =
        std::clamp<std::size_t>(reply.limits.max_message_bytes, least_message, largest_message);
    session = {std::move(reply.session),    std::move(reply.learner), message_bytes,
               most_segments(reply.limits), reply.accepts_zstd,       reply.limits.max_pack_segments};
    schema_hash = std::move(reply.schema_hash);
    lineage = std::move(reply.lineage);
    replaced_lineages = std::move(reply.replaced_lineages);
    version = reply.version;
    if (reply.control) {
        order = ControlOrder::from_message(*reply.control);
    }
    report_seconds = reply.report_seconds;
    record_share = share_of(reply.record_share);
    accepts_fallback = reply.accepts_fallback;
    accepts_incumbent = reply.accepts_incumbent;
    max_steps =
        std::min<std::size_t>(reply.limits.max_segment_steps == 0 ? otherwise_steps : reply.limits.max_segment_steps,
                              steps_of_a_message(reply.schema, message_bytes));
    const auto action = asks ? asked_action(reply, settings) : reply.explore->action;
    const bool fits =
        asks ? reply.schema.action == action_array(action) && reply.schema.choices == wire::choices_of(action)
             : reply.schema == wire::format_of(*reply.explore);
    if (!fits || schema_hash.size() != hash_bytes) {
        throw ContractViolation(
            "The schema of learner '" + session.learner +
            "' is not that of its policy. Compare the versions of client and server, and report it.");
    }
    const bool can_exploit = asks ? reply.exploit_schema.has_value() : reply.exploit.has_value();
    if (settings.mode != ActingMode::Explore && !can_exploit) {
        throw CallFailed(Code::Unimplemented, std::string("The server sent no exploit policy, with which `mode: ") +
                                                  name_of(settings.mode) +
                                                  "` acts. Upgrade the server, or use `mode: explore`.");
    }
    const InterfaceSettings reading(settings);
    if (asks) {
        const wire::SegmentFormat& form = reply.exploit_schema ? *reply.exploit_schema : reply.schema;
        most_rows =
            std::min<std::size_t>(std::max(reply.limits.max_act_rows, 1U), rows_of_a_message(form, message_bytes));
        interface = std::make_shared<const PolicyInterface>(form, action, reading);
    } else {
        interface =
            std::make_shared<const PolicyInterface>(std::move(*reply.explore), std::move(reply.exploit), reading);
    }
}

bool OpenSession::continues(const Snapshot& snapshot) const {
    const std::string& ours = snapshot.lineage;
    return ours.empty() || lineage.empty() || ours == lineage ||
           std::find(replaced_lineages.begin(), replaced_lineages.end(), ours) != replaced_lineages.end();
}

bool OpenSession::goes_back(std::uint64_t other, const Snapshot* snapshot) const {
    return snapshot != nullptr && !lineage.empty() && snapshot->lineage == lineage && other <= snapshot->version;
}

bool OpenSession::fits(const Snapshot& snapshot) const {
    return snapshot.schema_hash == schema_hash &&
           (snapshot.interface == interface || snapshot.interface->text == interface->text);
}

double share_of(double record_share) {
    return record_share > 0.0 && record_share < 1.0 ? record_share : 1.0;
}

bool is_wanted(const PolicyInterface& interface, const ClientSettings& settings) {
    const auto wanted = without_mask(settings.observation);
    const bool sees = wanted.empty() || wanted == without_mask(interface.form->observation);
    return sees && (!settings.action || is_same(*settings.action, interface.action));
}

SharedSession::SharedSession(std::shared_ptr<wire::Transport> transport, const ClientSettings& settings,
                             std::uint64_t epoch, Known known, OnJoin on_join)
    : transport_(std::move(transport)),
      settings_(settings),
      request_(join_request(settings, epoch)),
      known_(std::move(known)),
      on_join_(std::move(on_join)) {}

std::shared_ptr<const OpenSession> SharedSession::opened() const {
    const std::lock_guard lock(mutex_);
    return opened_;
}

std::shared_ptr<const OpenSession> SharedSession::open() {
    const std::lock_guard joining(joining_);
    if (auto present = opened()) {
        return present;
    }
    const SharedSnapshot known = known_();
    request_.lineage = known ? known->lineage : "";
    request_.have = known ? std::optional(known->version) : std::nullopt;
    const auto joined =
        std::make_shared<const OpenSession>(transport_->join(request_, settings_.call_seconds()), settings_);
    if (!is_wanted(*joined->interface, settings_)) {
        throw ContractViolation("The learner '" + joined->session.learner +
                                "' replied with a policy for other observations or actions than this client asked "
                                "for. Compare the versions of client and server, and report it.");
    }
    on_join_(*joined);
    const std::lock_guard lock(mutex_);
    opened_ = joined;
    return joined;
}

void SharedSession::forget(const OpenSession& opened) {
    const std::lock_guard lock(mutex_);
    if (opened_.get() == &opened) {
        opened_.reset();
    }
}

}  // namespace rl4sys::client
