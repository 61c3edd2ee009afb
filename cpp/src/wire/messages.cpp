#include "wire/messages.hpp"

#include <utility>

#include "wire/policies.hpp"

namespace rl4sys::wire {
namespace {

std::string reason_of(v1::RefusalReason reason) {
    switch (reason) {
        case v1::REFUSAL_REASON_SCHEMA: return "schema";
        case v1::REFUSAL_REASON_MALFORMED: return "malformed";
        case v1::REFUSAL_REASON_TOO_LARGE: return "too_large";
        case v1::REFUSAL_REASON_NOT_FINITE: return "not_finite";
        case v1::REFUSAL_REASON_OUT_OF_RANGE: return "out_of_range";
        case v1::REFUSAL_REASON_UNKNOWN_VERSION: return "unknown_version";
        case v1::REFUSAL_REASON_REWARD_BOUNDS: return "reward_bounds";
        default: return "refused";
    }
}

Control control_of(const v1::Control& message) {
    return {static_cast<int>(message.mode()), message.sequence(), message.reason(), message.ordered_by()};
}

SegmentFormat format_of(const v1::SegmentSchema& schema) {
    SegmentFormat form;
    form.observation = decode_arrays("observation", schema.observation());
    form.action = decode_array(schema.action());
    form.extras = decode_arrays("extras", schema.extras());
    form.carry = decode_arrays("carry", schema.carry());
    form.choices.assign(schema.choices().begin(), schema.choices().end());
    return form;
}

PatchHeader header_of(const v1::PatchHeader& message) {
    PatchHeader header;
    if (message.has_base()) {
        header.base = message.base();
    }
    header.target = message.target();
    header.encoding = static_cast<int>(message.encoding());
    header.size = message.size();
    header.sha256 = message.sha256();
    header.payload_bytes = message.payload_bytes();
    return header;
}

void write(const ProfileBlock& block, v1::ProfileBlock& message) {
    message.set_round(block.round);
    message.set_level(block.level);
    message.set_seconds(block.seconds);
    message.set_decisions(block.decisions);
    message.set_cpu_seconds(block.cpu_seconds);
    message.set_background_cpu_seconds(block.background_cpu_seconds);
    message.set_memory_bytes(block.memory_bytes);
    message.set_waits(block.waits);
    message.set_preemptions(block.preemptions);
    message.set_sent_messages(block.traffic.sent_messages);
    message.set_sent_bytes(block.traffic.sent_bytes);
    message.set_received_messages(block.traffic.received_messages);
    message.set_received_bytes(block.traffic.received_bytes);
    message.set_backlog_segments(block.backlog_segments);
    message.set_backlog_bytes(block.backlog_bytes);
    if (block.version_age_seconds) {
        message.set_version_age_seconds(*block.version_age_seconds);
    }
    message.set_longest_nanoseconds(block.longest_nanoseconds);
    message.mutable_times()->insert(block.times.begin(), block.times.end());
}

void write(const ProfileProgress& progress, v1::ProfileProgress& message) {
    message.set_sequence(progress.sequence);
    message.set_first_block(progress.first_block);
    for (const ProfileBlock& block : progress.blocks) {
        write(block, *message.add_blocks());
    }
    message.set_is_complete(progress.is_complete);
    message.set_problem(progress.problem);
    if (progress.floor_nanoseconds) {
        message.set_floor_nanoseconds(*progress.floor_nanoseconds);
    }
}

}  // namespace

v1::JoinRequest to_message(const JoinRequest& request) {
    v1::JoinRequest message;
    message.set_protocol(protocol);
    message.set_client(request.client);
    message.set_policy_id(request.policy_id);
    if (!request.algorithm.empty()) {
        message.mutable_algorithm()->set_name(request.algorithm);
        message.mutable_algorithm()->set_parameters_json(request.parameters_json);
    } else if (!request.experiment.empty()) {
        message.set_experiment(request.experiment);
    }
    for (const ArraySpec& spec : request.observation) {
        *message.add_observation() = encode_array(spec);
    }
    if (request.action) {
        *message.mutable_action() = encode_action(*request.action);
    }
    for (const std::string& op : request.ops) {
        message.add_ops(op);
    }
    for (const HeadKind head : request.heads) {
        message.add_heads(static_cast<v1::HeadKind>(head));
    }
    message.set_software(request.software);
    message.set_epoch(request.epoch);
    message.set_lineage(request.lineage);
    if (request.have) {
        message.set_have(*request.have);
    }
    message.set_mode(static_cast<v1::ActingMode>(request.mode));
    return message;
}

v1::PushRequest to_message(const PushRequest& request) {
    v1::PushRequest message;
    message.set_session(request.session);
    message.set_epoch(request.epoch);
    message.set_schema_hash(request.schema_hash);
    for (const PushedSegment& pushed : request.segments) {
        auto* segment = message.add_segments();
        segment->set_sequence(pushed.sequence);
        segment->set_segment(pushed.segment);
        segment->set_uncompressed_bytes(pushed.uncompressed_bytes);
        segment->set_count(pushed.count);
    }
    return message;
}

v1::PullRequest to_message(const PullRequest& request) {
    v1::PullRequest message;
    message.set_session(request.session);
    if (request.have) {
        message.set_have(*request.have);
    }
    return message;
}

v1::WatchRequest to_message(const WatchRequest& request) {
    v1::WatchRequest message;
    message.set_session(request.session);
    message.set_have(request.have);
    message.set_max_patch_bytes(request.max_patch_bytes);
    message.set_control(request.control);
    return message;
}

v1::ActRequest to_message(const ActRequest& request) {
    v1::ActRequest message;
    message.set_session(request.session);
    message.set_schema_hash(request.schema_hash);
    message.set_rows(request.rows);
    message.set_agent(request.agent);
    message.set_lane(request.lane);
    message.set_step(request.step);
    for (const std::string& column : request.observation) {
        message.add_observation(column);
    }
    for (const std::string& column : request.carry) {
        message.add_carry(column);
    }
    message.mutable_lanes()->Add(request.lanes.begin(), request.lanes.end());
    message.mutable_steps()->Add(request.steps.begin(), request.steps.end());
    return message;
}

v1::ReportRequest to_message(const ReportRequest& request) {
    v1::ReportRequest message;
    message.set_session(request.session);
    message.set_epoch(request.epoch);
    const ClientReport& report = request.report;
    v1::ClientReport& written = *message.mutable_report();
    if (report.version) {
        written.set_version(*report.version);
    }
    written.set_lineage(report.lineage);
    written.set_mode(report.mode);
    written.set_control_sequence(report.control_sequence);
    written.set_off(report.off);
    written.set_decisions(report.decisions);
    written.set_fallback_decisions(report.fallback_decisions);
    written.set_bad_inputs(report.bad_inputs);
    written.set_unanswered_decisions(report.unanswered_decisions);
    written.set_thinned_episodes(report.thinned_episodes);
    written.set_open_episodes(report.open_episodes);
    written.set_backlog_segments(report.backlog_segments);
    written.set_backlog_bytes(report.backlog_bytes);
    for (const auto& [reason, count] : report.drops) {
        (*written.mutable_drops())[reason] = count;
    }
    written.set_late_rewards(report.late_rewards);
    written.mutable_decision_time()->Add(report.decision_time.begin(), report.decision_time.end());
    written.set_last_error(report.last_error);
    written.set_uptime_seconds(report.uptime_seconds);
    if (request.profile) {
        write(*request.profile, *message.mutable_profile());
    }
    return message;
}

JoinReply from_message(const v1::JoinReply& message) {
    JoinReply reply;
    reply.protocol = message.protocol();
    reply.learner = message.learner();
    reply.session = message.session();
    if (message.has_explore()) {
        reply.explore = decode_policy(message.explore());
    }
    if (message.has_schema()) {
        reply.schema = format_of(message.schema());
    }
    if (message.has_action()) {
        reply.action = decode_action(message.action());
    }
    if (message.has_exploit_schema()) {
        reply.exploit_schema = format_of(message.exploit_schema());
    }
    reply.schema_hash = message.schema_hash();
    reply.version = message.version();
    reply.limits = {message.limits().max_message_bytes(), message.limits().max_segment_steps(),
                    message.limits().max_push_segments(), message.limits().max_outstanding_segments(),
                    message.limits().max_act_rows(),      message.limits().max_pack_segments()};
    reply.lineage = message.lineage();
    reply.replaced_lineages.assign(message.replaced_lineages().begin(), message.replaced_lineages().end());
    if (message.has_exploit()) {
        reply.exploit = decode_policy(message.exploit());
    }
    if (message.has_control()) {
        reply.control = control_of(message.control());
    }
    reply.report_seconds = message.report_seconds();
    reply.record_share = message.record_share();
    reply.accepts_fallback = message.accepts_fallback();
    reply.accepts_zstd = message.accepts_zstd();
    reply.accepts_incumbent = message.accepts_incumbent();
    return reply;
}

PushReply from_message(const v1::PushReply& message) {
    PushReply reply;
    for (const auto& range : message.acknowledged()) {
        reply.acknowledged.push_back({range.first(), range.last()});
    }
    for (const auto& refusal : message.refused()) {
        reply.refused.push_back({refusal.sequence(), reason_of(refusal.reason()), refusal.message(), refusal.count()});
    }
    reply.retry_after_ms = message.retry_after_ms();
    reply.version = message.version();
    reply.record_share = message.record_share();
    return reply;
}

ActReply from_message(v1::ActReply&& message) {
    ActReply reply;
    reply.version = message.version();
    reply.action = std::move(*message.mutable_action());
    for (std::string& column : *message.mutable_extras()) {
        reply.extras.push_back(std::move(column));
    }
    for (std::string& column : *message.mutable_carry()) {
        reply.carry.push_back(std::move(column));
    }
    return reply;
}

ReportReply from_message(const v1::ReportReply& message) {
    ReportReply reply;
    if (message.has_control()) {
        reply.control = control_of(message.control());
    }
    reply.record_share = message.record_share();
    reply.warning = message.warning();
    reply.version = message.version();
    if (message.has_profile()) {
        reply.profile =
            ProfileOrder{message.profile().sequence(), message.profile().seconds(), message.profile().seed()};
    }
    return reply;
}

PatchChunk from_message(v1::PatchChunk&& message) {
    PatchChunk chunk;
    if (message.has_header()) {
        chunk.header = header_of(message.header());
    }
    chunk.payload = std::move(*message.mutable_payload());
    return chunk;
}

NewVersion from_message(v1::NewVersion&& message) {
    NewVersion news;
    news.version = message.version();
    if (message.has_patch()) {
        news.patch = from_message(std::move(*message.mutable_patch()));
    }
    if (message.has_control()) {
        news.control = control_of(message.control());
    }
    news.record_share = message.record_share();
    return news;
}

}  // namespace rl4sys::wire
