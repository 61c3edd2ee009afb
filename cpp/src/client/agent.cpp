#include "client/agent.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <stdexcept>
#include <utility>

#include "client/client_report.hpp"
#include "client/forks.hpp"
#include "records/disk_outbox.hpp"
#include "rl4sys/log.hpp"

namespace rl4sys::client {
namespace {

// Seconds that a sealed segment may wait before it is in the outbox: the most that a killed client loses.
constexpr double longest_linger = 0.05;
// A backlog of this size is sent at once, so that the experience of a fast system stays recent.
constexpr std::size_t eager_bytes = 32 << 10;
constexpr double least_join_seconds = 0.2;
// Random steps to begin with have 48 bits, which leaves room for as many decisions.
constexpr int step_bits = 15;

std::unique_ptr<records::AnyOutbox> outbox_for(const ClientSettings& settings, std::uint64_t epoch) {
    records::OutboxLimits limits;
    limits.capacity_bytes = settings.outbox_bytes;
    limits.overflow = settings.overflow;
    if (settings.outbox) {
        return std::make_unique<records::DiskOutbox>(*settings.outbox, epoch, limits);
    }
    return std::make_unique<records::Outbox>(epoch, limits);
}

/// The name of the files of a policy.
const std::string& policy_name(const ClientSettings& settings) {
    return settings.policy_id.empty() ? settings.client_id : settings.policy_id;
}

std::unique_ptr<PolicyCache> cache_for(const ClientSettings& settings, const Clock& clock) {
    // With `decide: server` there is no policy to keep.
    const bool keeps = settings.cache && settings.decide == DecisionPlace::Local;
    return keeps ? std::make_unique<PolicyCache>(*settings.cache, policy_name(settings), clock,
                                                 InterfaceSettings(settings))
                 : nullptr;
}

std::unique_ptr<ControlFile> control_file_for(const ClientSettings& settings) {
    return settings.cache ? std::make_unique<ControlFile>(*settings.cache, policy_name(settings)) : nullptr;
}

/// A cached policy, if it observes and acts as the settings ask for.
SharedSnapshot fitting(SharedSnapshot snapshot, const ClientSettings& settings) {
    if (snapshot && !is_wanted(*snapshot->interface, settings)) {
        log(LogLevel::Warning, "The cached policy of '" + snapshot->learner +
                                   "' is not used: it observes or acts otherwise than this client asked for.");
        return nullptr;
    }
    return snapshot;
}

std::optional<FallbackDecider> decider_for(const ClientSettings& settings, Fallback fallback) {
    if (!fallback) {
        return std::nullopt;
    }
    return FallbackDecider(std::move(fallback), settings.action, settings.action_structure, settings.observation);
}

BadInputChoice on_bad_input(const ClientSettings& settings, bool has_fallback) {
    if (settings.on_bad_input == BadInputChoice::FallBack && !has_fallback) {
        throw SettingsError("on_bad_input: got fallback, but there is none. Pass a fallback to connect.");
    }
    return settings.on_bad_input.value_or(has_fallback ? BadInputChoice::FallBack : BadInputChoice::Raise);
}

void require_fallback(const ClientSettings& settings, bool has_fallback) {
    if (settings.mode == ActingMode::Observe && !has_fallback) {
        throw SettingsError(
            "mode: got observe, in which the fallback acts, but there is none. Pass a fallback to connect.");
    }
    if (settings.decide == DecisionPlace::Server && !has_fallback) {
        throw SettingsError(
            "decide: got server, but there is no fallback for the time that it does not answer. Pass a fallback to "
            "connect.");
    }
}

}  // namespace

Start fresh_start(const ClientSettings& settings) {
    const std::uint64_t epoch = records::fresh_epoch();
    // Microseconds since 1970: larger at every start, even after small corrections of the clock.
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto first = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
    return {epoch, static_cast<std::uint64_t>(first), settings.seed.value_or(epoch), steady_seconds};
}

Core::Core(ClientSettings settings, std::shared_ptr<wire::Transport> transport, const Start& start,
           const Fallback& fallback)
    : settings_(std::move(settings)),
      transport_(std::move(transport)),
      clock_(start.clock),
      started_at_(clock_()),
      control_file_(control_file_for(settings_)),
      governor_(
          settings_.mode, control_file_ ? control_file_->load() : ControlOrder(),
          [this](const ControlOrder& order) {
              if (control_file_) {
                  control_file_->save(order);
              }
          },
          settings_.decide == DecisionPlace::Server),
      thinning_(settings_.policy_id.empty() ? std::nullopt : std::optional(fleet_phase(settings_.client_id))),
      queue_(settings_.outbox_bytes / 4, settings_.overflow, status_,
             std::min(settings_.send_interval, longest_linger)),
      answer_wait_(random_source(start.epoch + 2), clock_, settings_.decide_timeout),
      server_policy_(
          transport_, answer_wait_, status_, settings_.decide_timeout,
          [this](const SharedSnapshot& snapshot) { governor_.publish(snapshot, clock_()); },
          [this](const OpenSession& opened) {
              if (shared_session_.opened().get() == &opened) {
                  watcher_.renew();
              }
          }),
      shared_{governor_,
              queue_,
              status_,
              thinning_,
              times_,
              server_policy_,
              settings_.max_segment_length,
              settings_.reward_window,
              clock_,
              decider_for(settings_, fallback),
              on_bad_input(settings_, fallback != nullptr),
              settings_.action_structure,
              settings_.client_id,
              start.seed,
              settings_.seed ? 0 : start.epoch >> step_bits,
              forks()},
      lanes_(shared_, start.first_episode),
      shared_session_(
          transport_, settings_, start.epoch, [this] { return governor_.known(); },
          [this](const OpenSession& opened) { governor_.joined(opened); }),
      courier_(outbox_for(settings_, start.epoch),
               {settings_.send_interval, settings_.send_frequency, std::min(eager_bytes, settings_.outbox_bytes / 2)},
               random_source(start.epoch), shared_session_, transport_, settings_.call_seconds(), clock_, status_,
               governor_, start.refused_seconds),
      cache_(cache_for(settings_, clock_)),
      watcher_(
          shared_session_, transport_, governor_, settings_.call_seconds(), random_source(start.epoch + 1), clock_,
          status_,
          [this](const SharedSnapshot& snapshot) {
              if (cache_) {
                  cache_->keep(snapshot);
              }
          },
          start.refused_seconds, settings_.decide == DecisionPlace::Server ? &server_policy_ : nullptr),
      encoder_(queue_, courier_, status_, governor_),
      guard_(governor_, status_, clock_, settings_.kill_file, settings_.lease),
      profile_(
          {governor_, times_, [this] { return health(); }, [this] { return transport_->traffic(); },
           fallback != nullptr},
          [this](std::function<void()> work) {
              return std::make_unique<BackgroundThread>("profiler", std::move(work), shared_from_this(), status_);
          },
          [this] { reporter_.wake(); }),
      reporter_(
          shared_session_, transport_, governor_, status_, clock_, settings_, start.epoch,
          [this] { return client_report(health(), clock_() - started_at_); }, profile_, [this] { watcher_.renew(); }) {
    require_fallback(settings_, shared_.fallback.has_value());
    if (cache_) {
        governor_.set_cached(fitting(cache_->load(), settings_));
    }
}

void Core::run() {
    const auto start = [this](const char* name, std::function<void()> work) {
        threads_.push_back(std::make_unique<BackgroundThread>(name, std::move(work), shared_from_this(), status_));
    };
    start("encoder", [this] { encoder_.run(); });
    start("courier", [this] { courier_.run(); });
    start("watcher", [this] { watcher_.run(); });
    start("reporter", [this] { reporter_.run(); });
    if (guard_.is_needed()) {
        start("guard", [this] { guard_.run(); });
    }
}

std::pair<Lane*, std::uint64_t> Core::episode() {
    if (is_forked()) {
        throw std::logic_error(explain_fork());
    }
    if (closed_) {
        throw std::logic_error("This agent is closed; call rl4sys::connect for another one.");
    }
    return lanes_.take();
}

void Core::end(Lane& lane, std::uint64_t number, const Observation& final_observation, Ending ending, ArrayView mask,
               std::optional<double> now) {
    if (lane.end(number, final_observation, ending, mask, now)) {
        lanes_.release(lane);
    }
}

Health Core::health() const {
    Health health;
    if (const SharedSnapshot snapshot = governor_.snapshot()) {
        health.learner = snapshot->learner;
        health.version = snapshot->version;
        health.lineage = snapshot->lineage;
        health.age = clock_() - governor_.since();
    }
    const OutboxCounts outbox = courier_.counts();
    health.connected = status_.connected();
    health.decisions = lanes_.decisions();
    health.fallback_decisions = status_.fallback_decisions;
    health.incumbent_decisions = status_.incumbent_decisions;
    health.unanswered_decisions = status_.unanswered_decisions;
    health.open_episodes = lanes_.open_count();
    health.backlog = queue_.waiting() + outbox.backlog;
    health.backlog_bytes = outbox.backlog_bytes;
    health.acknowledged = outbox.acknowledged;
    health.mode = name_of(settings_.mode);
    health.off = governor_.plan()->off;
    const ControlOrder order = governor_.order();
    health.control = order.text();
    health.control_sequence = order.sequence;
    health.record_share = governor_.record_share();
    health.observed_decisions = status_.observed_decisions;
    health.agreed_decisions = status_.agreed_decisions;
    health.decision_time = times_.counts();
    health.warning = status_.warning();
    health.lineage_problem = governor_.lineage_problem();
    health.versions_not_taken = status_.versions_not_taken;
    health.thinned_episodes = status_.thinned_episodes;
    health.unrecorded_decisions = status_.unrecorded_decisions;
    health.drops = status_.drops();
    for (const auto& [reason, count] : outbox.drops) {
        health.drops[reason] += count;
    }
    health.late_rewards = status_.late_rewards;
    health.damaged_patches = status_.damaged_patches;
    health.bad_inputs = status_.bad_inputs;
    health.defaulted_inputs = status_.defaulted_inputs;
    health.runtime = std::string("native-") + kernel_set();
    health.last_error = status_.last_error();
    health.stopped = status_.stopped().value_or("");
    return health;
}

void Core::set_level(ClientLevel level) {
    if (level == ClientLevel::Off && !shared_.fallback) {
        throw std::invalid_argument("The level 'off' needs a fallback, which decides then. Pass one to connect.");
    }
    governor_.set_level(level);
}

bool Core::flush(double timeout) {
    const double deadline = clock_() + timeout;
    return queue_.drained(timeout) && courier_.flush(deadline);
}

void Core::close(std::optional<double> timeout) {
    if (closed_.exchange(true)) {
        return;
    }
    const double seconds = timeout.value_or(settings_.close_timeout);
    const double deadline = clock_() + seconds;
    for (const auto& [lane, number] : lanes_.open()) {
        end(*lane, number, {}, Ending::Truncated, {});
    }
    queue_.close();
    if (queue_.drained(seconds)) {
        courier_.flush(deadline, true);
    }
    courier_.stop();
    watcher_.stop();
    reporter_.stop();
    profile_.stop();
    guard_.stop();
    transport_->close();
    for (const auto& thread : threads_) {
        thread->join(std::max(least_join_seconds, deadline - clock_()));
    }
    // After the reporter, which begins profiles.
    profile_.close(std::max(least_join_seconds, deadline - clock_()));
    if (cache_) {
        cache_->save();
    }
    if (const std::size_t lost = courier_.close()) {
        status_.drop("unsent_at_close", lost);
    }
}

std::optional<std::string> Core::wait_for_policy(double timeout, bool until_unreachable) {
    const bool gives_up = until_unreachable || governor_.has_cached();
    governor_.wait(timeout, [this, gives_up] {
        return status_.stopped().has_value() || (gives_up && status_.reach() == Reach::Unreachable);
    });
    return status_.stopped();
}

bool Core::is_forked() const {
    return shared_.forks != forks();
}

void Core::require_unforked() const {
    if (is_forked()) {
        throw std::logic_error(explain_fork());
    }
}

}  // namespace rl4sys::client

namespace rl4sys {

Episode::Episode(std::shared_ptr<client::Core> core, client::Lane& lane, std::uint64_t number)
    : core_(std::move(core)), lane_(&lane), number_(number) {}

Episode& Episode::operator=(Episode&& other) noexcept {
    Episode moved(std::move(other));
    std::swap(core_, moved.core_);
    std::swap(lane_, moved.lane_);
    std::swap(number_, moved.number_);
    return *this;
}

Episode::~Episode() {
    if (core_ && !core_->is_forked()) {
        try {
            end({}, Ending::Truncated);
        } catch (const std::exception& error) {
            log(LogLevel::Error, std::string("An episode could not be ended: ") + error.what());
        }
    }
}

void Action::throw_no_action() const {
    throw NoAction(problem_, message_);
}

void Action::throw_no_part(std::string_view path) {
    throw std::invalid_argument("The action has no part '" + std::string(path) +
                                "'. Name it as in the setting `action`.");
}

Action Episode::act(const Observation& observation, ArrayView mask, std::optional<double> now) noexcept {
    if (!core_) {
        Action none;
        none.problem_ = Problem::EpisodeEnded;
        return none;
    }
    return lane_->act(number_, observation, mask, now);
}

void Episode::took(const Observation& observation, const FallbackAction& action, ArrayView mask,
                   std::optional<double> now) {
    require_open();
    lane_->took(number_, observation, action, mask, now);
}

void Episode::reward(double value) {
    require_open();
    lane_->reward(number_, value, std::nullopt, false);
}

void Episode::reward(double value, std::int64_t decision, bool is_final) {
    require_open();
    lane_->reward(number_, value, decision, is_final);
}

void Episode::end(const Observation& final_observation, Ending ending, ArrayView mask, std::optional<double> now) {
    if (!core_) {
        return;
    }
    core_->require_unforked();
    core_->end(*lane_, number_, final_observation, ending, mask, now);
}

void Episode::withdraw(std::int64_t decision) {
    require_open();
    lane_->withdraw(number_, decision);
}

std::int64_t Episode::decision() const noexcept {
    return !core_ || core_->is_forked() ? -1 : lane_->decision(number_);
}

bool Episode::ended() const noexcept {
    return !core_ || core_->is_forked() || lane_->ended(number_);
}

void Episode::require_open() const {
    if (!core_) {
        throw std::logic_error("The episode was moved to another handle. Use that one.");
    }
    core_->require_unforked();
}

Agent::Agent(std::shared_ptr<client::Core> core) : core_(std::move(core)) {}

Agent& Agent::operator=(Agent&& other) noexcept {
    Agent moved(std::move(other));
    std::swap(core_, moved.core_);
    return *this;
}

Agent::~Agent() {
    close();
}

client::Core& Agent::core() const {
    if (!core_) {
        throw std::logic_error("The agent was moved to another handle. Use that one.");
    }
    core_->require_unforked();
    return *core_;
}

Episode Agent::episode() {
    static_cast<void>(core());
    const auto [lane, number] = core_->episode();
    return {core_, *lane, number};
}

std::vector<Action> Agent::act_many(const std::vector<Episode*>& episodes, const std::vector<Observation>& observations,
                                    const std::vector<ArrayView>& masks, std::optional<double> now) {
    static_cast<void>(core());
    const std::size_t count = episodes.size();
    if (observations.size() != count || (!masks.empty() && masks.size() != count)) {
        throw std::invalid_argument("Got " + std::to_string(observations.size()) + " observations and " +
                                    std::to_string(masks.size()) + " masks for " + std::to_string(count) +
                                    " episodes; expected one for each.");
    }
    for (const Episode* episode : episodes) {
        if (episode == nullptr || episode->core_ != core_) {
            throw std::invalid_argument("One of the episodes belongs to another agent; pass those of this one.");
        }
    }
    const std::set<Episode*> different(episodes.begin(), episodes.end());
    if (different.size() == count && count > 1 && !core_->is_forked()) {
        std::vector<client::BatchRow> rows;
        rows.reserve(count);
        for (std::size_t row = 0; row < count; ++row) {
            rows.push_back({episodes[row]->lane_, episodes[row]->number_, &observations[row],
                            masks.empty() ? ArrayView() : masks[row], now});
        }
        return core_->act_many(std::move(rows));
    }
    std::vector<Action> actions;
    actions.reserve(count);
    for (std::size_t row = 0; row < count; ++row) {
        actions.push_back(episodes[row]->act(observations[row], masks.empty() ? ArrayView() : masks[row], now));
    }
    return actions;
}

Health Agent::health() const {
    return core().health();
}

ClientLevel Agent::level() const noexcept {
    return core_ ? core_->level() : ClientLevel::Off;
}

void Agent::set_level(ClientLevel level) {
    core().set_level(level);
}

bool Agent::flush(double timeout) {
    return core().flush(timeout);
}

void Agent::close(std::optional<double> timeout) noexcept {
    if (!core_ || core_->is_forked()) {
        return;
    }
    try {
        core_->close(timeout);
    } catch (const std::exception& error) {
        log(LogLevel::Error, std::string("The agent could not be closed in order: ") + error.what());
    }
}

bool Agent::has_policy() const noexcept {
    return core_ && !core_->is_forked() && core_->has_policy();
}

const ClientSettings& Agent::settings() const noexcept {
    static const ClientSettings none;
    return core_ ? core_->settings() : none;
}

}  // namespace rl4sys
