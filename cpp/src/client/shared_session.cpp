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
constexpr std::size_t most_taken_weights = std::size_t{1} << 27;
// Bytes of a message beyond the values of a segment: names, numbers, and the slack of `Delivery`.
constexpr std::size_t message_slack = std::size_t{8} << 10;
constexpr std::size_t per_array = 16;
constexpr std::size_t otherwise_steps = std::size_t{1} << 16;

/// The share of episodes to record; 1 where the server sent none or nonsense.
double share_of(double sent) {
    return sent > 0.0 && sent < 1.0 ? sent : 1.0;
}

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

std::vector<ArraySpec> without_mask(std::vector<ArraySpec> arrays) {
    arrays.erase(
        std::remove_if(arrays.begin(), arrays.end(), [](const ArraySpec& array) { return array.name == mask_name; }),
        arrays.end());
    return arrays;
}

bool is_same(const ActionSpec& one, const ActionSpec& other) {
    if (one.index() != other.index()) {
        return false;
    }
    if (const auto* discrete = std::get_if<DiscreteAction>(&one)) {
        return discrete->n == std::get<DiscreteAction>(other).n &&
               discrete->start == std::get<DiscreteAction>(other).start;
    }
    if (const auto* several = std::get_if<MultiDiscreteAction>(&one)) {
        return several->sizes == std::get<MultiDiscreteAction>(other).sizes;
    }
    if (const auto* mixed = std::get_if<MixedAction>(&one)) {
        const auto& others = std::get<MixedAction>(other);
        return mixed->sizes == others.sizes && mixed->low == others.low && mixed->high == others.high;
    }
    return std::get<BoxAction>(one).low == std::get<BoxAction>(other).low &&
           std::get<BoxAction>(one).high == std::get<BoxAction>(other).high;
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
    request.ops = known_ops();
    std::sort(request.ops.begin(), request.ops.end());
    request.heads = known_heads();
    request.software = "rl4sys-cpp/" RL4SYS_VERSION;
    request.epoch = epoch;
    return request;
}

}  // namespace

OpenSession::OpenSession(wire::JoinReply reply) {
    if (reply.protocol != wire::protocol) {
        throw CallFailed(Code::FailedPrecondition,
                         "The server speaks protocol " + std::to_string(reply.protocol) + "; this client speaks " +
                             std::to_string(wire::protocol) + ". Upgrade the older one.",
                         {wire::FailureReason::Protocol, 0});
    }
    if (!reply.explore) {
        throw CallFailed(Code::Unimplemented,
                         "The policy of learner '" + reply.learner +
                             "' acts only on the server, and this client acts by itself. Choose an "
                             "algorithm whose policy runs in clients, such as PPO or DQN.");
    }
    const std::size_t message_bytes =
        std::clamp<std::size_t>(reply.limits.max_message_bytes, least_message, largest_message);
    session = {std::move(reply.session), std::move(reply.learner), message_bytes, most_segments(reply.limits)};
    schema_hash = std::move(reply.schema_hash);
    lineage = std::move(reply.lineage);
    replaced_lineages = std::move(reply.replaced_lineages);
    version = reply.version;
    control = std::move(reply.control);
    report_seconds = reply.report_seconds;
    record_share = share_of(reply.record_share);
    accepts_fallback = reply.accepts_fallback;
    max_steps =
        std::min<std::size_t>(reply.limits.max_segment_steps == 0 ? otherwise_steps : reply.limits.max_segment_steps,
                              steps_of_a_message(reply.schema, message_bytes));
    if (!(reply.schema == wire::format_of(*reply.explore)) || schema_hash.size() != hash_bytes) {
        throw ContractViolation(
            "The schema of learner '" + session.learner +
            "' is not that of its policy. Compare the versions of client and server, and report it.");
    }
    try {
        spec_text = policy_to_json(*reply.explore);
        weight_count = Layout(reply.explore->program.tensors).size();
        if (weight_count > most_taken_weights) {
            throw LayoutMismatch("it has " + std::to_string(weight_count) + " weights; at most " +
                                 std::to_string(most_taken_weights) + " can be sent.");
        }
        // A policy that cannot be run is refused here, once, and not in a decision.
        const auto weights = std::make_shared<const Weights>(weight_count);
        const Policy trial(*reply.explore, weights);
        if (reply.exploit) {
            const Policy other(*reply.exploit, weights);
            if (!(reply.exploit->program.inputs == reply.explore->program.inputs) ||
                !is_same(reply.exploit->action, reply.explore->action)) {
                throw std::invalid_argument("its exploit policy has other observations or actions.");
            }
        }
    } catch (const std::invalid_argument& error) {
        throw ContractViolation(std::string("The server's policy cannot be run here: ") + error.what());
    }
    spec = std::make_shared<const PolicySpec>(std::move(*reply.explore));
    if (reply.exploit) {
        exploit = std::make_shared<const PolicySpec>(std::move(*reply.exploit));
    }
    form = std::make_shared<const wire::SegmentFormat>(std::move(reply.schema));
}

bool OpenSession::follows(const Snapshot& snapshot) const {
    const std::string& present = snapshot.lineage;
    return present.empty() || lineage.empty() || present == lineage ||
           std::find(replaced_lineages.begin(), replaced_lineages.end(), present) != replaced_lineages.end();
}

bool OpenSession::fits(const Snapshot& snapshot) const {
    return snapshot.schema_hash == schema_hash &&
           (snapshot.spec == spec || policy_to_json(*snapshot.spec) == spec_text);
}

SharedSession::SharedSession(std::shared_ptr<wire::Transport> transport, const ClientSettings& settings,
                             std::uint64_t epoch, const NewestSnapshot& newest, OnJoin on_join)
    : transport_(std::move(transport)),
      request_(join_request(settings, epoch)),
      timeout_(settings.timeout),
      newest_(newest),
      on_join_(std::move(on_join)) {}

std::shared_ptr<const OpenSession> SharedSession::open() {
    const std::lock_guard lock(joining_);
    if (!opened_) {
        const SharedSnapshot present = newest_.get();
        request_.lineage = present ? present->lineage : "";
        request_.have = present ? std::optional(present->version) : std::nullopt;
        auto opened = std::make_shared<OpenSession>(transport_->join(request_, timeout_));
        require_wanted(*opened);
        opened->keeps_other_lineage = present && !opened->follows(*present);
        if (on_join_) {
            on_join_(*opened);
        }
        opened_ = std::move(opened);
    }
    return opened_;
}

/// Refuse a policy for other observations or actions, before it can act. A mask may always be left out.
void SharedSession::require_wanted(const OpenSession& opened) const {
    const auto wanted = without_mask(request_.observation);
    const bool sees = wanted.empty() || wanted == without_mask(opened.spec->program.inputs);
    if (!sees || (request_.action && !is_same(*request_.action, opened.spec->action))) {
        throw ContractViolation("The learner '" + opened.session.learner +
                                "' replied with a policy for other observations or actions than this client asked "
                                "for. Compare the versions of client and server, and report it.");
    }
}

void SharedSession::forget(const OpenSession& opened) {
    const std::lock_guard lock(joining_);
    if (opened_.get() == &opened) {
        opened_.reset();
    }
}

}  // namespace rl4sys::client
