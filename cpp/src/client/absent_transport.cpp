#include "client/absent_transport.hpp"

#include <utility>

namespace rl4sys::client {
namespace {

using namespace wire;

class AbsentTransport final : public Transport {
public:
    explicit AbsentTransport(std::string problem) : problem_(std::move(problem)) {}

    JoinReply join(const JoinRequest&, double) override { fail(); }
    PushReply push(const PushRequest&, double) override { fail(); }
    std::unique_ptr<Stream<PatchChunk>> pull(const PullRequest&, double) override { fail(); }
    std::unique_ptr<Stream<NewVersion>> watch(const WatchRequest&) override { fail(); }
    ActReply act(const ActRequest&, double) override { fail(); }
    ReportReply report(const ReportRequest&, double) override { fail(); }
    void close() noexcept override {}

private:
    [[noreturn]] void fail() const { throw CallFailed(Code::Unavailable, problem_); }

    std::string problem_;
};

}  // namespace

std::shared_ptr<wire::Transport> absent_transport(std::string problem) {
    return std::make_shared<AbsentTransport>(std::move(problem));
}

}  // namespace rl4sys::client
