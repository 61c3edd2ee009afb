#include "client/watcher.hpp"

#include <optional>
#include <utility>

namespace rl4sys::client {
namespace {

using wire::CallFailed;
using wire::Code;
using wire::ContractViolation;

// Largest patch in bytes that the server may include in a `NewVersion`; larger ones are pulled.
constexpr std::uint32_t largest_pushed = 1U << 20;

/// Why a patch cannot be used; nothing if `work` used it. Failures of the connection pass through.
template <typename Work>
std::optional<std::string> unusable(const Work& work) {
    try {
        work();
    } catch (const PatchMismatch& error) {
        return error.what();
    } catch (const ContractViolation& error) {
        return error.what();
    } catch (const LayoutMismatch& error) {
        return error.what();
    }
    return std::nullopt;
}

}  // namespace

Watcher::Watcher(SharedSession& shared_session, std::shared_ptr<wire::Transport> transport, Governor& governor,
                 double timeout, RandomSource rng, Clock clock, AgentStatus& status, OnPublish on_publish,
                 double refused_seconds, ServerPolicy* server_policy)
    : shared_session_(shared_session),
      transport_(std::move(transport)),
      governor_(governor),
      timeout_(timeout),
      backoff_(std::move(rng)),
      clock_(std::move(clock)),
      status_(status),
      on_publish_(std::move(on_publish)),
      refused_seconds_(refused_seconds),
      server_policy_(server_policy) {}

void Watcher::run() {
    while (!is_stopping()) {
        SharedOpenSession opened;
        double seconds = 0.0;
        try {
            const auto problem = unusable([&] {
                opened = shared_session_.open();
                catch_up(opened);
                watch(*opened);
            });
            if (problem) {
                status_.failed(*problem);
            }
            seconds = backoff_.failed();
        } catch (const wire::CallInterrupted&) {
            // The server is as well as before.
        } catch (const CallFailed& error) {
            if (is_stopping()) {
                // Closing the connection cancelled this call.
                return;
            }
            seconds = backoff_.failed(recover(error, opened));
        }
        pause(seconds);
    }
}

double Watcher::recover(const CallFailed& error, const SharedOpenSession& opened) {
    const Remedy what = remedy(error);
    // NotFound for a version is solved by pulling again; for an experiment the user has to act.
    const bool is_refused = what == Remedy::Repair && (!opened || error.code != Code::NotFound);
    if ((is_refused || what == Remedy::Join) && opened) {
        shared_session_.forget(*opened);
    }
    if (is_refused) {
        status_.refused(Caller::Watcher, error.what());
        governor_.wake();
        return refused_seconds_;
    }
    status_.failed(error.what(), reach_of(error));
    governor_.wake();
    return asked_pause(error.failure.retry_after_ms);
}

void Watcher::stop() {
    std::shared_ptr<wire::Stream<wire::NewVersion>> watching;
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        watching = watching_;
    }
    stopped_.notify_all();
    if (watching) {
        watching->cancel();
    }
}

void Watcher::renew() {
    std::shared_ptr<wire::Stream<wire::NewVersion>> watching;
    {
        const std::lock_guard lock(mutex_);
        renewing_ = true;
        watching = watching_;
    }
    if (watching) {
        watching->cancel();
    }
}

bool Watcher::is_stopping() const {
    const std::lock_guard lock(mutex_);
    return stopping_;
}

bool Watcher::is_renewing() const {
    const std::lock_guard lock(mutex_);
    return renewing_;
}

void Watcher::pause(double seconds) {
    std::unique_lock lock(mutex_);
    stopped_.wait_for(lock, length_of(seconds), [this] { return stopping_; });
}

void Watcher::catch_up(const SharedOpenSession& opened) {
    // After joining: pull if the present weights are old or belong to another learner.
    const SharedSnapshot known = governor_.known();
    if (std::exchange(joined_, opened) != opened) {
        status_.succeeded(Caller::Watcher);
    }
    if (server_policy_ != nullptr) {
        follow(opened);
        return;
    }
    if (governor_.keeps_version()) {
        governor_.use_cached(clock_());
    }
    if (!governor_.lineage_problem().empty()) {
        return;
    }
    if (opened == caught_up_ && known) {
        if (status_.connected()) {
            return;
        }
        // A silent watch does not show whether the server is back; this call does.
        pull(*opened, known);
    } else if (governor_.keeps_version()) {
        // An operator froze the version.
    } else if (!known || !opened->fits(*known)) {
        pull(*opened, nullptr);
    } else if (!opened->goes_back(opened->version, known.get()) && known->version != opened->version) {
        pull(*opened, known->version < opened->version ? known : nullptr);
    }
    governor_.use_cached(clock_());
    caught_up_ = opened;
    status_.succeeded(Caller::Watcher);
}

void Watcher::follow(const SharedOpenSession& opened) {
    if (opened != caught_up_) {
        governor_.publish(server_policy_->join(opened), clock_());
        caught_up_ = opened;
    } else if (!status_.connected()) {
        // A silent watch does not show whether the server is back; this call does. What it sends is not needed.
        const SharedSnapshot snapshot = governor_.snapshot();
        transport_->pull({opened->session.id, snapshot ? std::optional(snapshot->version) : std::nullopt}, timeout_)
            ->next();
    }
    status_.succeeded(Caller::Watcher);
}

void Watcher::watch(const OpenSession& opened) {
    const SharedSnapshot snapshot = governor_.snapshot();
    if (!snapshot) {
        return;
    }
    wire::WatchRequest request{opened.session.id, 0, 0, true};
    if (governor_.lineage_problem().empty()) {
        request.have = snapshot->version;
        request.max_patch_bytes = server_policy_ == nullptr ? largest_pushed : 0;
    }
    const std::shared_ptr<wire::Stream<wire::NewVersion>> watching = transport_->watch(request);
    {
        const std::lock_guard lock(mutex_);
        if (stopping_) {
            return;
        }
        watching_ = watching;
    }
    // However it ends, `stop` must not cancel a stream that is gone.
    struct Forget {
        Watcher& watcher;
        ~Forget() {
            const std::lock_guard lock(watcher.mutex_);
            watcher.watching_.reset();
        }
    } const forget{*this};
    while (!is_renewing()) {
        auto news = watching->next();
        if (!news) {
            break;
        }
        receive(opened, std::move(*news));
    }
    bool renews = false;
    {
        const std::lock_guard lock(mutex_);
        renews = std::exchange(renewing_, false);
    }
    if (renews) {
        shared_session_.forget(opened);
        backoff_.succeeded();
    }
}

void Watcher::receive(const OpenSession& opened, wire::NewVersion news) {
    backoff_.succeeded();
    status_.succeeded(Caller::Watcher);
    const SharedSnapshot snapshot = governor_.snapshot();
    if (news.control) {
        const bool kept = governor_.keeps_version();
        governor_.obey(ControlOrder::from_message(*news.control));
        if (kept && !governor_.keeps_version() && server_policy_ == nullptr) {
            pull(opened, snapshot);
        }
        return;
    }
    if (news.record_share != 0.0) {
        governor_.ask_share(share_of(news.record_share));
    }
    if (!snapshot || news.version == snapshot->version || governor_.keeps_version()) {
        return;
    }
    if (server_policy_ != nullptr) {
        const SharedSnapshot announced = server_policy_->announced(opened, news.version);
        if (announced && announced->version > snapshot->version) {
            governor_.publish(announced, clock_());
        }
        return;
    }
    if (opened.goes_back(news.version, snapshot.get())) {
        ++status_.versions_not_taken;
        return;
    }
    if (news.version < snapshot->version || !news.patch) {
        // An older version: either a pull was faster, or the present version is unknown to this learner, and the
        // server then sends the newest in full.
        pull(opened, snapshot);
        return;
    }
    if (const auto& header = news.patch->header; header && header->base && *header->base != snapshot->version) {
        // Versions between were not taken, because an operator had frozen this one.
        pull(opened, snapshot);
        return;
    }
    const auto problem = unusable([&] {
        apply(
            opened, snapshot, [&] { return std::exchange(news.patch, std::nullopt); }, news.version);
    });
    if (problem) {
        ++status_.damaged_patches;
        pull(opened, nullptr);
    }
}

void Watcher::pull(const OpenSession& opened, const SharedSnapshot& have) {
    wire::PullRequest request{opened.session.id, std::nullopt};
    if (have) {
        request.have = have->version;
    }
    const auto chunks = transport_->pull(request, timeout_);
    auto first = chunks->next();
    if (!first) {
        if (!have) {
            throw ContractViolation("The server sent no weights though the client has none. Report it.");
        }
        return;
    }
    const auto problem = unusable(
        [&] { apply(opened, have, [&] { return first ? std::exchange(first, std::nullopt) : chunks->next(); }); });
    if (problem) {
        ++status_.damaged_patches;
        if (!have) {
            throw ContractViolation(*problem);
        }
        pull(opened, nullptr);
    }
}

void Watcher::apply(const OpenSession& opened, const SharedSnapshot& base, const wire::NextChunk& next,
                    std::optional<std::uint64_t> target) {
    const SharedSnapshot known = governor_.known();
    const std::size_t size = opened.interface->weight_count;
    const Patch patch = wire::decode_patch(next, size);
    if (patch.base && (!base || *patch.base != base->version)) {
        throw PatchMismatch("The patch starts from version " + std::to_string(*patch.base) +
                            ", which this client does not have. Pull in full.");
    }
    if (target && patch.target != *target) {
        throw PatchMismatch("The patch leads to version " + std::to_string(patch.target) + "; " +
                            std::to_string(*target) + " was announced. Pull in full.");
    }
    SharedWeights weights = apply_patch(base ? base->weights.get() : nullptr, patch, size);
    if (!all_finite(*weights)) {
        throw ContractViolation("Version " + std::to_string(patch.target) +
                                " has weights that are NaN or infinite. See the learner's log.");
    }
    if (opened.goes_back(patch.target, known.get()) || governor_.keeps_version()) {
        ++status_.versions_not_taken;
        return;
    }
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->interface = known && opened.fits(*known) ? known->interface : opened.interface;
    snapshot->schema_hash = opened.schema_hash;
    snapshot->learner = opened.session.learner;
    snapshot->version = patch.target;
    snapshot->weights = std::move(weights);
    snapshot->max_steps = opened.max_steps;
    snapshot->lineage = opened.lineage;
    governor_.publish(snapshot, clock_());
    on_publish_(snapshot);
}

}  // namespace rl4sys::client
