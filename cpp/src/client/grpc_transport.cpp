// The only file that includes gRPC's headers: they take longer to compile than everything else together.
#include "client/grpc_transport.hpp"

#include <grpcpp/grpcpp.h>
#include <rl4sys/v1/training.grpc.pb.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "client/fork_gate.hpp"
#include "client/grpc_library.hpp"
#include "client/signals_blocked.hpp"
#include "client/tokens.hpp"
#include "wire/messages.hpp"

namespace rl4sys::client {
namespace {

using namespace wire;

constexpr int message_bytes = (4 << 20) + (64 << 10);
// How long a fork waits for an attempt to connect. If that takes longer, the child cannot use gRPC.
constexpr std::chrono::milliseconds longest_attempt{500};

grpc::ChannelArguments channel_arguments() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
    // A watch may be silent for hours; pings on it detect half-open connections.
    arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    arguments.SetMaxSendMessageSize(message_bytes);
    arguments.SetMaxReceiveMessageSize(message_bytes);
    // The courier decides when to retry a call; reconnecting may happen a little sooner.
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    // Also the deadline of one attempt to connect: three round trips with TLS, of up to three seconds.
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 10'000);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    // Agents of one process do not share a connection: closing one must not disturb another.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return arguments;
}

std::string contents(const std::optional<std::filesystem::path>& path) {
    if (!path) {
        return "";
    }
    std::ifstream file(*path, std::ios::binary);
    std::ostringstream text;
    if (!file || !(text << file.rdbuf())) {
        throw SettingsError("tls: " + path->string() + " cannot be read: " + std::strerror(errno) + ".");
    }
    return text.str();
}

std::optional<grpc::SslCredentialsOptions> certificates(const std::optional<Tls>& tls) {
    if (!tls) {
        return std::nullopt;
    }
    if (tls->cert.has_value() != tls->key.has_value()) {
        throw SettingsError("tls: got only one of cert and key; give both or neither.");
    }
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = contents(tls->ca);
    options.pem_private_key = contents(tls->key);
    options.pem_cert_chain = contents(tls->cert);
    return options;
}

Code code_of(grpc::StatusCode code) {
    switch (code) {
        case grpc::StatusCode::CANCELLED: return Code::Cancelled;
        case grpc::StatusCode::INVALID_ARGUMENT: return Code::InvalidArgument;
        case grpc::StatusCode::DEADLINE_EXCEEDED: return Code::DeadlineExceeded;
        case grpc::StatusCode::NOT_FOUND: return Code::NotFound;
        case grpc::StatusCode::PERMISSION_DENIED: return Code::PermissionDenied;
        case grpc::StatusCode::UNAUTHENTICATED: return Code::Unauthenticated;
        case grpc::StatusCode::RESOURCE_EXHAUSTED: return Code::ResourceExhausted;
        case grpc::StatusCode::FAILED_PRECONDITION: return Code::FailedPrecondition;
        case grpc::StatusCode::UNIMPLEMENTED: return Code::Unimplemented;
        case grpc::StatusCode::UNKNOWN:
        case grpc::StatusCode::INTERNAL: return Code::Internal;
        // An unexpected code, from a proxy or a broken peer, is a fault of the connection, not of the request.
        default: return Code::Unavailable;
    }
}

bool contains(std::string text, const std::string& words) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char letter) { return std::tolower(letter); });
    return text.find(words) != std::string::npos;
}

/// A call that reached no server, in the words of the Python client: those of gRPC differ from release to release.
CallFailed unreached(const std::string& message) {
    // With '_' from BoringSSL, with ' ' from OpenSSL.
    if (contains(message, "certificate_verify_failed") || contains(message, "certificate verify failed")) {
        return {Code::Unauthenticated,
                "The certificate of the server is not trusted: it is not signed by the CA in `tls: {ca: FILE}`, or has "
                "expired. Give the CA of this server, or renew its certificate."};
    }
    if (contains(message, "timed out")) {
        // Not that there is no server: it may be far away, or busy.
        return {Code::DeadlineExceeded, "the attempt to connect timed out"};
    }
    return {Code::Unavailable, contains(message, "connection refused") ? "connection refused" : message};
}

/// Throw `CallFailed` for an error of gRPC.
void require_ok(const grpc::Status& status, const grpc::ClientContext& context) {
    if (status.ok()) {
        return;
    }
    Failure failure;
    const auto& metadata = context.GetServerTrailingMetadata();
    if (const auto entry = metadata.find(failure_metadata); entry != metadata.end()) {
        failure = failure_from_metadata({entry->second.data(), entry->second.length()});
    }
    const std::string message = status.error_message();
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE && !message.empty() &&
        failure.reason == FailureReason::Unspecified && failure.retry_after_ms == 0) {
        throw unreached(message);
    }
    throw CallFailed(code_of(status.error_code()),
                     message.empty() ? "code " + std::to_string(status.error_code()) : message, failure);
}

/// The pending calls, so that closing can cancel them.
class OpenCalls {
public:
    void add(grpc::ClientContext& context) {
        const std::lock_guard lock(mutex_);
        if (closed_) {
            throw CallFailed(Code::Cancelled, "The connection was closed.");
        }
        contexts_.insert(&context);
    }

    void remove(grpc::ClientContext& context) {
        const std::lock_guard lock(mutex_);
        contexts_.erase(&context);
    }

    void cancel() {
        const std::lock_guard lock(mutex_);
        for (grpc::ClientContext* context : contexts_) {
            context->TryCancel();
        }
    }

    void close() {
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
        }
        cancel();
    }

private:
    std::mutex mutex_;
    std::set<grpc::ClientContext*> contexts_;
    bool closed_ = false;
};

/// One call: its context, registered with `OpenCalls` for its lifetime.
class Call {
public:
    Call(std::shared_ptr<OpenCalls> open, const std::string& token) : open_(std::move(open)) {
        if (!token.empty()) {
            context_.AddMetadata("authorization", "Bearer " + token);
        }
        open_->add(context_);
        if (is_interrupted()) {
            // By a fork that did not know this call yet.
            context_.TryCancel();
        }
    }
    ~Call() { open_->remove(context_); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    void expire_in(double seconds) {
        const auto length =
            std::chrono::duration_cast<std::chrono::system_clock::duration>(std::chrono::duration<double>(seconds));
        context_.set_deadline(std::chrono::system_clock::now() + length);
    }
    grpc::ClientContext& context() { return context_; }

    /// Whether it ends because the process forks.
    bool is_interrupted() const { return inside_.is_interrupted(); }

private:
    InsideGate inside_;
    std::shared_ptr<OpenCalls> open_;
    grpc::ClientContext context_;
};

/// Counts messages; any thread may add.
class TrafficCounter {
public:
    void sent(const google::protobuf::MessageLite& message) {
        ++sent_messages_;
        sent_bytes_ += message.ByteSizeLong();
    }
    void received(const google::protobuf::MessageLite& message) {
        ++received_messages_;
        received_bytes_ += message.ByteSizeLong();
    }
    Traffic total() const { return {sent_messages_, sent_bytes_, received_messages_, received_bytes_}; }

private:
    std::atomic<std::uint64_t> sent_messages_ = 0;
    std::atomic<std::uint64_t> sent_bytes_ = 0;
    std::atomic<std::uint64_t> received_messages_ = 0;
    std::atomic<std::uint64_t> received_bytes_ = 0;
};

/// The messages of a streaming call.
template <typename Wire, typename Message>
class GrpcStream final : public Stream<Message> {
public:
    GrpcStream(std::unique_ptr<Call> call, std::unique_ptr<grpc::ClientReader<Wire>> reader,
               std::shared_ptr<TrafficCounter> traffic)
        : call_(std::move(call)), reader_(std::move(reader)), traffic_(std::move(traffic)) {}

    ~GrpcStream() override {
        if (!finished_) {
            call_->context().TryCancel();
            reader_->Finish();
        }
    }

    std::optional<Message> next() override {
        Wire message;
        if (!finished_ && reader_->Read(&message)) {
            traffic_->received(message);
            return from_message(std::move(message));
        }
        if (!std::exchange(finished_, true)) {
            const grpc::Status status = reader_->Finish();
            if (!cancelled_ && !status.ok() && call_->is_interrupted()) {
                throw CallInterrupted();
            }
            if (!cancelled_) {
                require_ok(status, call_->context());
            }
        }
        return std::nullopt;
    }

    void cancel() noexcept override {
        cancelled_ = true;
        call_->context().TryCancel();
    }

private:
    std::unique_ptr<Call> call_;
    std::unique_ptr<grpc::ClientReader<Wire>> reader_;
    std::shared_ptr<TrafficCounter> traffic_;
    std::atomic<bool> cancelled_ = false;
    bool finished_ = false;
};

class GrpcTransport final : public Transport, private ForkedConnection {
public:
    explicit GrpcTransport(const ClientSettings& settings)
        : token_(settings.token, settings.token_file),
          server_(settings.server),
          certificates_(certificates(settings.tls)) {
        const SignalsBlocked for_its_threads;
        restore();
        fork_gate().add(*this);
    }

    ~GrpcTransport() override { fork_gate().remove(*this); }
    GrpcTransport(const GrpcTransport&) = delete;
    GrpcTransport& operator=(const GrpcTransport&) = delete;

    JoinReply join(const JoinRequest& request, double timeout) override {
        return from_message(call(&Stub::Join, to_message(request), timeout));
    }

    PushReply push(const PushRequest& request, double timeout) override {
        return from_message(call(&Stub::Push, to_message(request), timeout));
    }

    std::unique_ptr<Stream<PatchChunk>> pull(const PullRequest& request, double timeout) override {
        auto call = std::make_unique<Call>(open_, token_.current());
        call->expire_in(timeout);
        const v1::PullRequest message = to_message(request);
        auto reader = stub_->Pull(&call->context(), message);
        traffic_->sent(message);
        return std::make_unique<GrpcStream<v1::PatchChunk, PatchChunk>>(std::move(call), std::move(reader), traffic_);
    }

    std::unique_ptr<Stream<NewVersion>> watch(const WatchRequest& request) override {
        auto call = std::make_unique<Call>(open_, token_.current());
        const v1::WatchRequest message = to_message(request);
        auto reader = stub_->Watch(&call->context(), message);
        traffic_->sent(message);
        return std::make_unique<GrpcStream<v1::NewVersion, NewVersion>>(std::move(call), std::move(reader), traffic_);
    }

    ActReply act(const ActRequest& request, double timeout) override {
        return from_message(call(&Stub::Act, to_message(request), timeout));
    }

    ReportReply report(const ReportRequest& request, double timeout) override {
        return from_message(call(&Stub::Report, to_message(request), timeout));
    }

    Traffic traffic() const override { return traffic_->total(); }

    void close() noexcept override {
        const SignalsBlocked for_its_threads;
        open_->close();
    }

private:
    using Stub = v1::Training::Stub;

    void interrupt() noexcept override { open_->cancel(); }
    void release() noexcept override {
        // gRPC stays up until an attempt to connect is over, and nothing but this moves it on.
        const auto deadline = std::chrono::system_clock::now() + longest_attempt;
        while (channel_->GetState(false) == GRPC_CHANNEL_CONNECTING &&
               channel_->WaitForStateChange(GRPC_CHANNEL_CONNECTING, deadline)) {
        }
        stub_.reset();
        channel_.reset();
    }
    void restore() noexcept override {
        const auto credentials =
            certificates_ ? grpc::SslCredentials(*certificates_) : grpc::InsecureChannelCredentials();
        channel_ = grpc::CreateCustomChannel(server_, credentials, channel_arguments());
        stub_ = v1::Training::NewStub(channel_);
    }

    /// One request and its reply.
    template <typename Request, typename Reply>
    Reply call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*), const Request& request,
               double timeout) {
        // Decisions come from the program's threads, and gRPC may start one of its own while it serves them.
        const SignalsBlocked for_its_threads;
        while (true) {
            Reply reply;
            Call call(open_, token_.current());
            call.expire_in(timeout);
            traffic_->sent(request);
            const grpc::Status status = ((*stub_).*method)(&call.context(), request, &reply);
            if (!status.ok() && call.is_interrupted()) {
                continue;
            }
            require_ok(status, call.context());
            traffic_->received(reply);
            return reply;
        }
    }

    GrpcLibrary library_;
    Token token_;
    std::string server_;
    std::optional<grpc::SslCredentialsOptions> certificates_;
    std::shared_ptr<TrafficCounter> traffic_ = std::make_shared<TrafficCounter>();
    std::shared_ptr<OpenCalls> open_ = std::make_shared<OpenCalls>();
    std::shared_ptr<grpc::Channel> channel_;
    std::unique_ptr<v1::Training::Stub> stub_;
};

}  // namespace

std::shared_ptr<wire::Transport> grpc_transport(const ClientSettings& settings) {
    return std::make_shared<GrpcTransport>(settings);
}

}  // namespace rl4sys::client
