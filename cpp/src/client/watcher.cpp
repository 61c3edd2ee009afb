#include "client/watcher.hpp"

#include <optional>
#include <utility>

#include "rl4sys/log.hpp"

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

Watcher::Watcher(SharedSession& shared_session, std::shared_ptr<wire::Transport> transport, NewestSnapshot& newest,
                 double timeout, RandomSource rng, Clock clock, AgentStatus& status, OnPublish on_publish,
                 double refused_seconds)
    : shared_session_(shared_session),
      transport_(std::move(transport)),
      newest_(newest),
      timeout_(timeout),
      backoff_(std::move(rng)),
      clock_(std::move(clock)),
      status_(status),
      on_publish_(std::move(on_publish)),
      refused_seconds_(refused_seconds) {}

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
        newest_.wake();
        return refused_seconds_;
    }
    status_.failed(error.what());
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

void Watcher::rejoin() {
    std::shared_ptr<wire::Stream<wire::NewVersion>> watching;
    {
        const std::lock_guard lock(mutex_);
        rejoining_ = true;
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

bool Watcher::is_rejoining() const {
    const std::lock_guard lock(mutex_);
    return rejoining_;
}

void Watcher::pause(double seconds) {
    std::unique_lock lock(mutex_);
    stopped_.wait_for(lock, length_of(seconds), [this] { return stopping_; });
}

void Watcher::catch_up(const SharedOpenSession& opened) {
    // After joining: pull if the present weights are old or belong to another learner.
    const SharedSnapshot snapshot = newest_.get();
    if (std::exchange(joined_, opened) != opened) {
        status_.succeeded(Caller::Watcher);
        if (snapshot && opened->keeps_other_lineage) {
            keep_other_lineage(*opened, *snapshot);
        }
    }
    if (opened == caught_up_ && snapshot) {
        if (status_.connected()) {
            return;
        }
        // A silent watch does not show whether the server is back; this call does.
        pull(*opened, snapshot);
    } else if (snapshot && opened->keeps_other_lineage) {
        // Another history: nothing of it is used.
    } else if (snapshot && opened->continues(*snapshot) && snapshot->version >= opened->version) {
        // The server has not caught up with what it had sent, or there is nothing new.
    } else if (!snapshot || !opened->fits(*snapshot) || snapshot->version > opened->version) {
        pull(*opened, nullptr);
    } else if (snapshot->version < opened->version) {
        pull(*opened, snapshot);
    }
    caught_up_ = opened;
    has_caught_up_ = true;
    newest_.wake();
    status_.succeeded(Caller::Watcher);
}

void Watcher::keep_other_lineage(const OpenSession& opened, const Snapshot& snapshot) {
    const std::string message =
        "The learner '" + opened.session.learner + "' has lineage " + opened.lineage + ", version " +
        std::to_string(opened.version) + "; this client acts with version " + std::to_string(snapshot.version) +
        " of lineage " + snapshot.lineage +
        ", keeps it and records nothing. Restore the learner's data, or accept its new lineage on the server.";
    status_.note(message);
    log(LogLevel::Error, message);
}

void Watcher::watch(const OpenSession& opened) {
    const SharedSnapshot snapshot = newest_.get();
    if (!snapshot) {
        return;
    }
    const std::shared_ptr<wire::Stream<wire::NewVersion>> watching = transport_->watch(
        {opened.session.id, snapshot->version, opened.keeps_other_lineage ? 0 : largest_pushed, true});
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
    while (!is_rejoining()) {
        auto news = watching->next();
        if (!news) {
            break;
        }
        receive(opened, std::move(*news));
    }
    bool rejoins = false;
    {
        const std::lock_guard lock(mutex_);
        rejoins = std::exchange(rejoining_, false);
    }
    if (rejoins) {
        shared_session_.forget(opened);
        backoff_.succeeded();
    }
}

void Watcher::receive(const OpenSession& opened, wire::NewVersion news) {
    backoff_.succeeded();
    status_.succeeded(Caller::Watcher);
    const SharedSnapshot snapshot = newest_.get();
    if (!snapshot || opened.keeps_other_lineage || news.version == snapshot->version) {
        return;
    }
    if (opened.continues(*snapshot) && news.version < snapshot->version) {
        return;
    }
    if (news.version < snapshot->version || !news.patch) {
        // An older version: either a pull was faster, or the present version is unknown to this learner, and the
        // server then sends the newest in full.
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
    const SharedSnapshot present = newest_.get();
    if (present && opened.keeps_other_lineage) {
        return;
    }
    const bool same = present && opened.fits(*present);
    const Patch patch = wire::decode_patch(next, opened.weight_count);
    if (patch.base && (!base || *patch.base != base->version)) {
        throw PatchMismatch("The patch starts from version " + std::to_string(*patch.base) +
                            ", which this client does not have. Pull in full.");
    }
    if (target && patch.target != *target) {
        throw PatchMismatch("The patch leads to version " + std::to_string(patch.target) + "; " +
                            std::to_string(*target) + " was announced. Pull in full.");
    }
    if (present && opened.continues(*present) && patch.target <= present->version) {
        // The server has not caught up with what it had sent.
        return;
    }
    SharedWeights weights = apply_patch(base ? base->weights.get() : nullptr, patch, opened.weight_count);
    if (!all_finite(*weights)) {
        throw ContractViolation("Version " + std::to_string(patch.target) +
                                " has weights that are NaN or infinite. See the learner's log.");
    }
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->spec = same ? present->spec : opened.spec;
    snapshot->form = same ? present->form : opened.form;
    snapshot->schema_hash = opened.schema_hash;
    snapshot->learner = opened.session.learner;
    snapshot->exploit = same ? present->exploit : opened.exploit;
    snapshot->lineage = opened.lineage;
    snapshot->version = patch.target;
    snapshot->weights = std::move(weights);
    snapshot->max_steps = opened.max_steps;
    newest_.publish(snapshot, clock_());
    on_publish_(snapshot);
}

}  // namespace rl4sys::client
