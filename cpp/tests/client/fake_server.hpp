/// A fake training service: it stores pushed segments, publishes given weights, and fails on request.
#pragma once

#include <rl4sys/v1/experience.pb.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/connection.hpp"
#include "client/control_order.hpp"
#include "rl4sys/weights.hpp"
#include "weights/packing.hpp"
#include "wire/calls.hpp"
#include "wire/segment_packs.hpp"

namespace rl4sys::testing {

/// Observes two numbers (and a mask) and chooses one of three by their weighted sums.
inline PolicySpec small_policy(bool masked = false) {
    PolicySpec spec;
    spec.action = DiscreteAction{3, 0};
    spec.program.inputs = {{"observation", ElementType::Float32, {2}}};
    spec.program.ops = {{"linear", {"r0"}, {"observation"}, {"w", "b"}, {}}};
    spec.program.tensors = {{"w", {2, 3}}, {"b", {3}}};
    spec.head.kind = HeadKind::Categorical;
    spec.head.inputs = {"r0"};
    if (masked) {
        spec.program.inputs.push_back({"action_mask", ElementType::Bool, {3}});
        spec.head.mask = "action_mask";
    }
    return spec;
}

/// Over the same weights, the choice with the greatest sum.
inline PolicySpec small_exploit_policy() {
    PolicySpec spec = small_policy();
    spec.head.kind = HeadKind::Deterministic;
    return spec;
}

class FakeServer : public wire::Transport {
public:
    explicit FakeServer(PolicySpec policy = small_policy()) : spec(std::move(policy)) {
        weights_.assign(Layout(spec.program.tensors).size(), 0.25F);
    }

    PolicySpec spec;
    wire::Limits limits{4U << 20, 1000, 64, 256};

    wire::JoinReply join(const wire::JoinRequest& request, double) override {
        const std::lock_guard lock(mutex_);
        require_up();
        ++joins;
        last_join = request;
        wire::JoinReply reply;
        reply.learner = "learner";
        reply.session = session_;
        reply.schema = wire::format_of(spec);
        reply.schema_hash = schema_hash;
        if (request.ops.empty()) {
            reply.action = spec.action;
            if (request.mode != ActingMode::Explore && exploit) {
                reply.exploit_schema = wire::format_of(*exploit);
            }
        } else {
            reply.explore = spec;
            reply.exploit = exploit;
        }
        reply.version = version_;
        reply.limits = limits;
        reply.lineage = lineage;
        reply.replaced_lineages = replaced_lineages;
        reply.control = control_;
        reply.report_seconds = report_seconds;
        reply.record_share = record_share;
        reply.accepts_fallback = accepts_fallback;
        reply.accepts_incumbent = accepts_incumbent;
        reply.accepts_zstd = accepts_zstd;
        changed_.notify_all();
        return reply;
    }

    wire::PushReply push(const wire::PushRequest& request, double) override {
        const std::lock_guard lock(mutex_);
        require_up();
        require_session(request.session);
        ++pushes;
        wire::PushReply reply;
        reply.record_share = record_share;
        for (const wire::PushedSegment& pushed : request.segments) {
            const std::string content = content_of(pushed);
            if (pushed.count <= 1) {
                stored[{request.epoch, pushed.sequence}] = content;
                reply.acknowledged.push_back({pushed.sequence, pushed.sequence});
                continue;
            }
            packs.push_back(pushed.count);
            std::uint64_t sequence = pushed.sequence;
            for (std::string& alone : wire::split_pack(content, pushed.count)) {
                stored[{request.epoch, sequence++}] = std::move(alone);
            }
            reply.acknowledged.push_back({pushed.sequence, sequence - 1});
        }
        changed_.notify_all();
        if (std::exchange(lose_next_answer, false)) {
            throw wire::CallFailed(wire::Code::DeadlineExceeded, "the answer was lost");
        }
        return reply;
    }

    std::unique_ptr<wire::Stream<wire::PatchChunk>> pull(const wire::PullRequest& request, double) override {
        const std::lock_guard lock(mutex_);
        require_up();
        require_session(request.session);
        ++pulls;
        return std::make_unique<Chunks>(request.have == version_ ? std::deque<wire::PatchChunk>()
                                                                 : std::deque<wire::PatchChunk>{patch()});
    }

    std::unique_ptr<wire::Stream<wire::NewVersion>> watch(const wire::WatchRequest& request) override {
        const std::lock_guard lock(mutex_);
        require_up();
        require_session(request.session);
        return std::make_unique<News>(*this, request);
    }

    /// Decides with the explore policy, as the Python server does.
    wire::ActReply act(const wire::ActRequest& request, double) override {
        const std::lock_guard lock(mutex_);
        require_up();
        require_session(request.session);
        if (refuse_acts) {
            throw wire::CallFailed(*refuse_acts, "not now");
        }
        acts.push_back(request);
        const auto held = std::make_shared<const Weights>(weights_);
        Policy policy(spec, held);
        const wire::SegmentFormat form = wire::format_of(spec);
        wire::ActReply reply;
        reply.version = version_;
        reply.extras.resize(form.extras.size());
        reply.carry.resize(form.carry.size());
        for (std::size_t row = 0; row < request.rows; ++row) {
            decide_row(policy, form, request, row, reply);
        }
        return reply;
    }

    wire::ReportReply report(const wire::ReportRequest& request, double) override {
        const std::lock_guard lock(mutex_);
        require_up();
        ++report_calls;
        require_session(request.session);
        if (!takes_reports) {
            throw wire::CallFailed(wire::Code::Unimplemented, "unknown method Report");
        }
        reports.push_back(request);
        changed_.notify_all();
        return {control_, record_share, warning, version_, profile};
    }

    void close() noexcept override {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        changed_.notify_all();
    }

    /// Publish a version whose weights are all this value.
    void publish(float value, bool damaged = false) {
        const std::lock_guard lock(mutex_);
        weights_.assign(weights_.size(), value);
        ++version_;
        damaged_ = damaged;
        changed_.notify_all();
    }

    /// Continue with this version, as a server that lost its newest ones.
    void set_version(std::uint64_t version, float value) {
        const std::lock_guard lock(mutex_);
        weights_.assign(weights_.size(), value);
        version_ = version;
        changed_.notify_all();
    }

    /// Give an order, on the watch and in replies.
    void order(client::ControlMode mode, std::uint64_t sequence, const std::string& reason = "a test") {
        const std::lock_guard lock(mutex_);
        control_ = wire::Control{static_cast<int>(mode), sequence, reason, "operator"};
        changed_.notify_all();
    }

    /// Change what later replies say, while clients are connected.
    void change(const std::function<void()>& work) {
        const std::lock_guard lock(mutex_);
        work();
        changed_.notify_all();
    }

    /// The latest report; an empty one before the first.
    wire::ReportRequest last_report() {
        const std::lock_guard lock(mutex_);
        return reports.empty() ? wire::ReportRequest() : reports.back();
    }

    bool wait_for_reports(std::size_t count, double seconds = 10.0) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return reports.size() >= count; });
    }

    bool wait_for_joins(int count, double seconds = 10.0) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return joins >= count; });
    }

    void set_down(bool down) {
        const std::lock_guard lock(mutex_);
        down_ = down;
        changed_.notify_all();
    }

    /// Forget all sessions, as after a restart.
    void forget_sessions() {
        const std::lock_guard lock(mutex_);
        session_ += "'";
        changed_.notify_all();
    }

    bool wait_for_segments(std::size_t count, double seconds = 10.0) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return stored.size() >= count; });
    }

    /// The stored segments, in the order of their keys.
    std::vector<v1::Segment> segments() {
        const std::lock_guard lock(mutex_);
        std::vector<v1::Segment> parsed;
        for (const auto& [key, bytes] : stored) {
            parsed.emplace_back().ParseFromString(bytes);
        }
        return parsed;
    }

    std::string schema_hash = std::string(32, 's');
    std::string lineage;
    std::vector<std::string> replaced_lineages;
    std::optional<PolicySpec> exploit;
    double report_seconds = 0.0;
    double record_share = 0.0;
    bool accepts_fallback = false;
    bool accepts_incumbent = false;
    bool accepts_zstd = false;
    std::vector<std::size_t> saved_bytes;  ///< Of each segment that came compressed.
    bool takes_reports = true;
    std::optional<wire::ProfileOrder> profile;  ///< The order in replies to reports.
    std::optional<wire::Code> refuse_acts;
    std::vector<wire::ActRequest> acts;
    std::string warning;
    std::vector<wire::ReportRequest> reports;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> stored;
    wire::JoinRequest last_join;
    bool lose_next_answer = false;
    bool exaggerate_next = false;  ///< The next version has a number that is never reached.
    int joins = 0;
    int pushes = 0;
    std::vector<std::uint32_t> packs;  ///< The segments of each pack.
    int pulls = 0;
    int report_calls = 0;

private:
    std::string content_of(const wire::PushedSegment& pushed) {
        if (pushed.uncompressed_bytes == 0) {
            return pushed.segment;
        }
        saved_bytes.push_back(pushed.uncompressed_bytes - pushed.segment.size());
        const auto content = decompress(pushed.segment.data(), pushed.segment.size(), pushed.uncompressed_bytes);
        return {content.begin(), content.end()};
    }

    class Chunks : public wire::Stream<wire::PatchChunk> {
    public:
        explicit Chunks(std::deque<wire::PatchChunk> chunks) : chunks_(std::move(chunks)) {}
        std::optional<wire::PatchChunk> next() override {
            if (chunks_.empty()) {
                return std::nullopt;
            }
            wire::PatchChunk chunk = std::move(chunks_.front());
            chunks_.pop_front();
            return chunk;
        }
        void cancel() noexcept override {}

    private:
        std::deque<wire::PatchChunk> chunks_;
    };

    class News : public wire::Stream<wire::NewVersion> {
    public:
        News(FakeServer& server, const wire::WatchRequest& request)
            : server_(server), have_(request.have), wants_control_(request.control), session_(server.session_) {}
        std::optional<wire::NewVersion> next() override {
            std::unique_lock lock(server_.mutex_);
            server_.changed_.wait(lock, [this] {
                return cancelled_ || server_.closed_ || server_.down_ || server_.session_ != session_ ||
                       server_.version_ > have_ || has_order();
            });
            if (cancelled_ || server_.closed_) {
                return std::nullopt;
            }
            if (server_.down_ || server_.session_ != session_) {
                throw wire::CallFailed(wire::Code::Unavailable, "the watch broke off");
            }
            if (has_order()) {
                ordered_ = server_.control_->sequence;
                return wire::NewVersion{have_, std::nullopt, server_.control_, 0.0};
            }
            have_ = server_.version_;
            wire::NewVersion news{have_, server_.patch(), std::nullopt, server_.record_share};
            if (std::exchange(server_.exaggerate_next, false)) {
                news.version = news.patch->header->target = std::uint64_t{1} << 60;
            }
            if (std::exchange(server_.damaged_, false)) {
                news.patch->payload[0] = static_cast<char>(news.patch->payload[0] ^ 1);
            }
            return news;
        }
        void cancel() noexcept override {
            const std::lock_guard lock(server_.mutex_);
            cancelled_ = true;
            server_.changed_.notify_all();
        }

    private:
        bool has_order() const { return wants_control_ && server_.control_ && server_.control_->sequence > ordered_; }

        FakeServer& server_;
        std::uint64_t have_;
        bool wants_control_;
        std::uint64_t ordered_ = 0;
        std::string session_;
        bool cancelled_ = false;
    };

    static void decide_row(Policy& policy, const wire::SegmentFormat& form, const wire::ActRequest& request,
                           std::size_t row, wire::ActReply& reply) {
        const std::uint64_t lane = request.lanes.empty() ? request.lane + row : request.lanes[row];
        const std::uint64_t step = request.steps.empty() ? request.step : request.steps[row];
        const KeyedNoise noise(7, StreamKey{"tester", "agent", lane}, noise_size(policy.spec()));
        std::vector<float> numbers(noise.size());
        noise.at(step, numbers.data());
        std::vector<const void*> rows;
        for (std::size_t place = 0; place < form.observation.size(); ++place) {
            rows.push_back(request.observation[place].data() + row * form.observation[place].bytes());
        }
        std::vector<float> carry;
        for (std::size_t place = 0; place < form.carry.size(); ++place) {
            const auto* first = reinterpret_cast<const float*>(request.carry[place].data());
            const std::size_t values = form.carry[place].values();
            carry.insert(carry.end(), first + row * values, first + (row + 1) * values);
        }
        const Decision decision = policy.decide(rows.data(), numbers.data(), carry.empty() ? nullptr : carry.data());
        if (decision.outcome != Outcome::Decided) {
            throw wire::CallFailed(wire::Code::InvalidArgument, describe(decision.outcome));
        }
        reply.action += static_cast<char>(*decision.choices);
        for (std::string& extra : reply.extras) {
            extra.append(reinterpret_cast<const char*>(&decision.log_prob), sizeof(float));
        }
        const float* after = decision.carry;
        for (std::size_t place = 0; place < form.carry.size(); ++place) {
            reply.carry[place].append(reinterpret_cast<const char*>(after), form.carry[place].bytes());
            after += form.carry[place].values();
        }
    }

    void require_up() const {
        if (down_ || closed_) {
            throw wire::CallFailed(wire::Code::Unavailable, "the server is away");
        }
    }

    void require_session(const std::string& session) const {
        if (session != session_) {
            throw wire::CallFailed(wire::Code::FailedPrecondition, "unknown session",
                                   {wire::FailureReason::UnknownSession, 0});
        }
    }

    wire::PatchChunk patch() const {
        wire::PatchHeader header;
        header.target = version_;
        header.encoding = static_cast<int>(Encoding::Raw);
        header.size = weights_.size();
        const Digest digest = sha256(weights_);
        header.sha256.assign(digest.begin(), digest.end());
        header.payload_bytes = weights_.size() * sizeof(float);
        std::string payload(header.payload_bytes, '\0');
        std::memcpy(payload.data(), weights_.data(), payload.size());
        return {header, payload};
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    Weights weights_;
    std::uint64_t version_ = 0;
    std::string session_ = "session";
    std::optional<wire::Control> control_;
    bool damaged_ = false;
    bool down_ = false;
    bool closed_ = false;
};

/// Settings that send everything at once.
inline ClientSettings quick_settings() {
    ClientSettings settings;
    settings.client_id = "tester";
    settings.timeout = 10.0;
    settings.send_interval = 0.0;
    settings.reward_window = 0;
    settings.seed = 7;
    return settings;
}

inline Agent connect_to(const std::shared_ptr<FakeServer>& server, const ClientSettings& settings = quick_settings(),
                        Fallback fallback = nullptr) {
    client::Start start = client::fresh_start(settings);
    start.first_episode = 100;
    start.refused_seconds = 0.01;
    return client::connect_over(settings, server, std::move(fallback), start);
}

/// Wait until a condition holds; false if it does not within ten seconds.
inline bool eventually(const std::function<bool()>& holds) {
    for (int attempt = 0; attempt < 2000; ++attempt) {
        if (holds()) {
            return true;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return holds();
}

/// A column of a segment as numbers.
template <typename T>
std::vector<T> column(const v1::Segment& segment, int place) {
    const std::string& data = segment.columns(place);
    std::vector<T> values(data.size() / sizeof(T));
    std::memcpy(values.data(), data.data(), data.size());
    return values;
}

}  // namespace rl4sys::testing
