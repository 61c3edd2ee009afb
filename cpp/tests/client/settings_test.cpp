#include "rl4sys/settings.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "records/temporary.hpp"
#include "rl4sys/agent.hpp"

namespace rl4sys {
namespace {

using nlohmann::json;
using testing::TemporaryDirectory;

/// The error for an invalid config.
std::string fault(const std::string& text) {
    try {
        parse_settings(text);
    } catch (const SettingsError& error) {
        return error.what();
    }
    return "";
}

bool mentions(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// A flat original config, with the names of its example and other values.
constexpr const char* flat = R"({
    "client_id": "lander-7",
    "algorithm_name": "PPO",
    "algorithm_parameters": {
        "batch_size": 128, "act_dim": 4, "seed": 3, "traj_per_epoch": 20, "clip_ratio": 0.1, "gamma": 0.9, "lam": 0.8,
        "pi_lr": 0.001, "vf_lr": 0.002, "train_pi_iters": 5, "train_v_iters": 6, "target_kl": null, "input_size": 8
    },
    "act_limit": 1.0,
    "max_traj_length": 500,
    "type": "onpolicy",
    "train_server_address": "localhost:4000",
    "send_frequency": 10
})";

constexpr const char* sections = R"({
    "algorithm": "PPO",
    "algorithm_parameters": {"learning_rate": 0.001, "gae_lambda": 0.9, "entropy_coef": 0.02},
    "network_architecture": {"hidden_sizes": [32, 16], "activation": "relu"},
    "training": {"batch_size": 32, "epochs": 4},
    "communication": {"server_address": "localhost:4001", "timeout": 5}
})";

TEST(Settings, ThePresentConfigIsRead) {
    const ClientSettings settings = parse_settings(R"({
        "client_id": "cache-1", "server": "127.0.0.1:7", "algorithm": {"name": "ppo", "lr": 0.01},
        "network": {"actor": {"type": "mlp"}}, "observation": {"queue": 8, "image": {"dtype": "uint8", "shape": [4, 4]}},
        "action": {"low": [-1, -2], "high": [1, 2]}, "outbox": "box", "overflow": "block", "seed": 5,
        "max_segment_length": 10, "reward_window": 0, "send_interval": 0, "mode": "exploit", "kill_file": "kill",
        "lease": 2.5})",
                                                   "/base");
    EXPECT_EQ(settings.mode, ActingMode::Exploit);
    EXPECT_EQ(settings.kill_file, "/base/kill");
    EXPECT_EQ(settings.lease, 2.5);
    EXPECT_EQ(settings.client_id, "cache-1");
    EXPECT_EQ(settings.algorithm, "ppo");
    EXPECT_EQ(json::parse(settings.parameters_json),
              (json{{"algorithm", {{"lr", 0.01}}}, {"network", {{"actor", {{"type", "mlp"}}}}}, {"seed", 5}}));
    EXPECT_EQ(settings.observation[1], (ArraySpec{"image", ElementType::UInt8, {4, 4}}));
    EXPECT_EQ(std::get<BoxAction>(*settings.action).high, (std::vector<double>{1, 2}));
    EXPECT_EQ(settings.outbox, "/base/box");
    EXPECT_EQ(settings.overflow, Overflow::Block);
    EXPECT_EQ(settings.max_segment_length, 10U);
    EXPECT_EQ(settings.reward_window.decisions, 0U);
    EXPECT_EQ(settings.send_interval, 0.0);
}

TEST(Settings, TheFlatOriginalConfigIsRead) {
    const ClientSettings settings = parse_settings(flat);
    EXPECT_EQ(settings.client_id, "lander-7");
    EXPECT_EQ(settings.server, "localhost:4000");
    EXPECT_EQ(settings.max_segment_length, 500U);
    EXPECT_EQ(settings.send_frequency, 10U);
    EXPECT_EQ(settings.send_interval, 1.0);
    EXPECT_EQ(settings.observation[0], (ArraySpec{"observation", ElementType::Float32, {8}}));
    EXPECT_EQ(std::get<DiscreteAction>(*settings.action).n, 4);
    const json parameters = json::parse(settings.parameters_json);
    EXPECT_EQ(parameters["algorithm"], (json{{"clip_ratio", 0.1},
                                             {"gamma", 0.9},
                                             {"gae_lambda", 0.8},
                                             {"lr", 0.001},
                                             {"critic_lr", 0.002},
                                             {"epochs", 5},
                                             {"critic_epochs", 6},
                                             {"episodes_per_update", 20},
                                             {"target_kl", nullptr},
                                             {"minibatch_size", 128}}));
    EXPECT_EQ(parameters["buffer"], (json{{"size", 10000}}));
    EXPECT_EQ(parameters["seed"], 3);
}

TEST(Settings, TheOriginalConfigInSectionsIsRead) {
    const ClientSettings settings = parse_settings(sections);
    EXPECT_EQ(settings.server, "localhost:4001");
    EXPECT_EQ(settings.timeout, 5.0);
    EXPECT_FALSE(settings.client_id.empty()) << "a client without a name is known by its machine";
    const json parameters = json::parse(settings.parameters_json);
    EXPECT_EQ(
        parameters["algorithm"],
        (json{{"lr", 0.001}, {"gae_lambda", 0.9}, {"entropy_coef", 0.02}, {"epochs", 4}, {"minibatch_size", 32}}));
    EXPECT_EQ(parameters["network"]["critic"],
              (json{{"type", "mlp"}, {"hidden_dims", {32, 16}}, {"activation", "relu"}}));
}

TEST(Settings, ContinuousAlgorithmsGetABoundedVectorOfActions) {
    const ClientSettings settings =
        parse_settings(R"({"algorithm_name": "SAC", "algorithm_parameters": {"act_dim": 2}, "act_limit": 2.5})");
    EXPECT_EQ(std::get<BoxAction>(*settings.action).low, (std::vector<double>{-2.5, -2.5}));
}

TEST(Settings, ARangeOfPortsBecomesTheOneOfTheLearner) {
    const auto server = [](const char* text) { return parse_settings(text, {}).server; };
    EXPECT_EQ(server(R"({"client_id": "a", "server": "my-host:50051-50054"})"), "my-host:50054");
    EXPECT_EQ(server(R"({"client_id": "a", "policy_id": "fleet", "server": "my-host:50051-50054"})"), "my-host:50052");
    EXPECT_EQ(server(R"({"client_id": "a", "server": "my-host:50051"})"), "my-host:50051");
}

TEST(Settings, TheNearestNameIsSuggestedForATypo) {
    EXPECT_TRUE(mentions(fault(R"({"client_id": "a", "overflwo": "block"})"), "did you mean 'overflow'?"));
    EXPECT_TRUE(mentions(fault(R"({"overflow": "drop_oldes"})"), "did you mean 'drop_oldest'?"));
    EXPECT_TRUE(mentions(fault(R"({"algorithm_name": "PPO", "algorithm_parameters": {"clip_ration": 0.2}})"),
                         "did you mean 'clip_ratio'?"));
    EXPECT_TRUE(mentions(fault(R"({"tls": {"cas": "x"}})"), "tls.cas: unknown name"));
}

TEST(Settings, WrongValuesAreNamedWithWhatWasExpected) {
    EXPECT_TRUE(mentions(fault(R"({"timeout": "soon"})"), "timeout: got \"soon\"; expected a number, at least 0.001."));
    EXPECT_TRUE(mentions(fault(R"({"max_segment_length": 0})"), "expected a whole number, at least 1"));
    EXPECT_TRUE(mentions(fault(R"({"client_id": "a/b"})"), "client_id is 'a/b'"));
    EXPECT_TRUE(mentions(fault(R"({"action": {"n": 3, "sizes": [2]}})"), "expected one of n, sizes, or low with high"));
    EXPECT_TRUE(mentions(fault(R"({"observation": {"queue": {"dtype": "float99", "shape": 1}}})"), "dtype 'float99'"));
    EXPECT_TRUE(mentions(fault(R"({"type": "offpolicy", "algorithm_name": "PPO"})"), "PPO is 'onpolicy'"));
    EXPECT_TRUE(mentions(fault("{"), "the file is not valid JSON"));
    EXPECT_TRUE(mentions(fault("[]"), "expected a mapping of names to values"));
    EXPECT_TRUE(mentions(fault(R"({"algorithm": "ppo", "experiment": "x"})"), "both given"));
    EXPECT_TRUE(mentions(fault(R"({"network": {"a": 1}})"), "without an algorithm"));
    EXPECT_TRUE(mentions(fault(R"({"server": "inproc://x"})"), "Python clients"));
    for (const char* server : {"127.0.0.1", "host:99999", "host:0", "host:http", ":50051"}) {
        EXPECT_TRUE(mentions(fault(json{{"server", server}}.dump()), "expected host:port")) << server;
    }
    EXPECT_EQ(fault(R"({"server": "unix:/run/rl4sys"})"), "");
    EXPECT_EQ(fault(R"({"server": "[::1]:50051"})"), "");
}

TEST(Settings, ATokenIsNotSentUnencryptedUnlessAllowed) {
    EXPECT_TRUE(mentions(fault(R"({"token": "t", "server": "example.org:1"})"), "unencrypted"));
    EXPECT_EQ(fault(R"({"token": "t", "server": "example.org:1", "insecure": true})"), "");
    EXPECT_EQ(fault(R"({"token": "t", "server": "example.org:1", "tls": {}})"), "");
    EXPECT_EQ(fault(R"({"token": "t", "server": "127.0.0.1:1"})"), "");
}

TEST(Settings, ConnectSendsNoTokenUnencryptedToAnotherMachine) {
    ClientSettings settings;
    settings.client_id = "one";
    settings.server = "trainer.example:50051";
    settings.token = "secret";
    EXPECT_THROW(connect(settings), SettingsError);
}

TEST(Settings, PathsAndTokensAreRelativeToTheFile) {
    const TemporaryDirectory directory;
    std::ofstream(directory.path() / "token") << "  secret \nsecond line\n";
    std::ofstream(directory.path() / "agent.json") << R"({"client_id": "a", "token_file": "token", "cache": "c"})";
    const ClientSettings settings = load_settings(directory.path() / "agent.json");
    EXPECT_EQ(settings.token, "secret");
    EXPECT_EQ(settings.cache, directory.path() / "c");
    EXPECT_THROW(load_settings(directory.path() / "absent.json"), SettingsError);
    EXPECT_THROW(load_settings(directory.path() / "agent.yaml"), SettingsError);
}

TEST(Settings, AMaskIsAnotherArray) {
    const ClientSettings settings =
        parse_settings(R"({"observation": 2, "action": {"sizes": [3, 2]}, "action_mask": true})");
    ASSERT_EQ(settings.observation.size(), 2U);
    EXPECT_EQ(settings.observation[1], (ArraySpec{"action_mask", ElementType::Bool, {5}}));
}

}  // namespace
}  // namespace rl4sys
