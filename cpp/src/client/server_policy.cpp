#include "client/server_policy.hpp"

#include <algorithm>
#include <utility>

#include "client/retries.hpp"

namespace rl4sys::client {
namespace {

using wire::CallFailed;
using wire::Code;
using wire::ContractViolation;

// Snapshots that are kept: threads may get answers of two versions in turn while one replaces the other.
constexpr std::size_t kept_versions = 8;

/// The same rows of all buffers, one after the other.
std::string gathered(const std::vector<AskedRow>& rows, std::size_t place, std::size_t bytes) {
    std::string column;
    column.reserve(rows.size() * bytes);
    for (const AskedRow& row : rows) {
        column.append(reinterpret_cast<const char*>(row.buffer->row(place, row.buffer->count)), bytes);
    }
    return column;
}

wire::ActRequest question(const OpenSession& opened, const wire::SegmentFormat& form,
                          const std::vector<AskedRow>& rows) {
    wire::ActRequest request;
    request.session = opened.session.id;
    request.schema_hash = opened.schema_hash;
    request.rows = static_cast<std::uint32_t>(rows.size());
    request.agent = "agent";
    request.lane = rows.front().lane;
    request.step = rows.front().step;
    bool is_consecutive = true;
    bool is_same_step = true;
    for (std::size_t row = 0; row < rows.size(); ++row) {
        is_consecutive = is_consecutive && rows[row].lane == request.lane + row;
        is_same_step = is_same_step && rows[row].step == request.step;
    }
    for (const AskedRow& row : rows) {
        if (!is_consecutive) {
            request.lanes.push_back(row.lane);
        }
        if (!is_same_step) {
            request.steps.push_back(row.step);
        }
    }
    for (std::size_t place = 0; place < form.observation.size(); ++place) {
        request.observation.push_back(gathered(rows, place, form.observation[place].bytes()));
    }
    std::size_t at = 0;
    for (const ArraySpec& memory : form.carry) {
        std::string column;
        for (const AskedRow& row : rows) {
            column.append(reinterpret_cast<const char*>(row.carry->data() + at), memory.bytes());
        }
        request.carry.push_back(std::move(column));
        at += memory.values();
    }
    return request;
}

ServerDecision without(Answered answered, std::string problem) {
    ServerDecision decision;
    decision.answered = answered;
    decision.problem = std::move(problem);
    return decision;
}

}  // namespace

ServerPolicy::ServerPolicy(std::shared_ptr<wire::Transport> transport, AnswerWait& wait, AgentStatus& status,
                           double timeout, OnVersion on_version, OnLostSession on_lost_session)
    : transport_(std::move(transport)),
      wait_(wait),
      status_(status),
      timeout_(timeout),
      on_version_(std::move(on_version)),
      on_lost_session_(std::move(on_lost_session)) {}

SharedSnapshot ServerPolicy::join(const SharedOpenSession& opened) {
    Asking now{opened, opened->interface};
    {
        const std::lock_guard lock(mutex_);
        const SharedInterface& present = asking_.interface;
        if (present && *present->form == *opened->interface->form &&
            is_same(present->action, opened->interface->action)) {
            now.interface = present;
        }
        if (asking_.opened != opened) {
            asking_ = now;
            snapshots_.clear();
        }
    }
    wait_.answered();
    SharedSnapshot snapshot = snapshot_of(now, opened->version);
    const std::lock_guard lock(mutex_);
    newest_ = snapshot;
    return snapshot;
}

SharedSnapshot ServerPolicy::announced(const OpenSession& opened, std::uint64_t version) {
    const Asking now = asking();
    return now.opened.get() == &opened ? snapshot_of(now, version) : nullptr;
}

std::size_t ServerPolicy::most_rows() const {
    const Asking now = asking();
    return now.opened ? now.opened->most_rows : 1;
}

ServerDecision ServerPolicy::decide(const std::vector<AskedRow>& rows, double timeout) {
    const Asking now = asking();
    const bool is_asked_alike = std::all_of(rows.begin(), rows.end(), [&](const AskedRow& row) {
        return row.buffer->snapshot->interface == now.interface;
    });
    if (!now.opened || !is_asked_alike) {
        return without(Answered::NoAnswer, "There is no session to ask in.");
    }
    if (!wait_.may_ask()) {
        return without(Answered::NoAnswer, "The server did not answer just before.");
    }
    const wire::SegmentFormat& form = *now.interface->form;
    ServerDecision decision;
    std::uint64_t version = 0;
    try {
        const wire::ActReply reply = transport_->act(question(*now.opened, form, rows), timeout);
        decision.rows = wire::decode_decisions(form, reply, rows.size());
        version = reply.version;
    } catch (const CallFailed& error) {
        return failed(*now.opened, error);
    } catch (const ContractViolation& error) {
        wait_.failed(error.what());
        return without(Answered::NoAnswer, error.what());
    }
    wait_.answered();
    status_.succeeded(Caller::Decisions);
    decision.answered = Answered::Decided;
    decision.snapshot = snapshot_of(now, version);
    bool is_other = false;
    {
        const std::lock_guard lock(mutex_);
        is_other = std::exchange(newest_, decision.snapshot) != decision.snapshot;
    }
    if (is_other) {
        on_version_(decision.snapshot);
    }
    return decision;
}

ServerPolicy::Asking ServerPolicy::asking() const {
    const std::lock_guard lock(mutex_);
    return asking_;
}

SharedSnapshot ServerPolicy::snapshot_of(const Asking& asking, std::uint64_t version) {
    const std::lock_guard lock(mutex_);
    const bool is_present = asking.opened == asking_.opened;
    if (const auto found = snapshots_.find(version); is_present && found != snapshots_.end()) {
        return found->second;
    }
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->interface = asking.interface;
    snapshot->schema_hash = asking.opened->schema_hash;
    snapshot->learner = asking.opened->session.learner;
    snapshot->version = version;
    snapshot->max_steps = asking.opened->max_steps;
    // Without a lineage: a client that holds no weights follows whatever the server has.
    if (is_present) {
        snapshots_[version] = snapshot;
        if (snapshots_.size() > kept_versions) {
            snapshots_.erase(snapshots_.begin());
        }
    }
    return snapshot;
}

ServerDecision ServerPolicy::failed(const OpenSession& opened, const CallFailed& error) {
    if (error.code == Code::InvalidArgument) {
        wait_.answered();
        return without(Answered::Impossible,
                       std::string("The policy cannot decide on this observation: ") + error.what());
    }
    status_.note(error.what());
    wait_.failed(error.what(), asked_pause(error.failure.retry_after_ms));
    if (remedy(error) == Remedy::Join) {
        on_lost_session_(opened);
    }
    return without(Answered::NoAnswer, error.what());
}

}  // namespace rl4sys::client
