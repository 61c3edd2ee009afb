#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "client/fake_server.hpp"

namespace rl4sys::testing {
namespace {

using nlohmann::json;
using Rows = std::vector<float>;

std::optional<double> time_of(const json& event) {
    return event.contains("now") ? std::optional(event["now"].get<double>()) : std::nullopt;
}

Ending ending_of(const std::string& name) {
    return name == "terminated" ? Ending::Terminated : Ending::Truncated;
}

/// Replays one event; returns what was refused, or an empty string.
std::string replay(Agent& agent, Episode& episode, const std::shared_ptr<FakeServer>& server,
                   const std::shared_ptr<std::atomic<double>>& clock, const json& event) {
    const std::string kind = event["do"];
    const Rows seen{event.value("seen", 0.0F), 0};
    try {
        if (kind == "took") {
            episode.took(seen, event["choice"].get<int>(), {}, time_of(event));
        } else if (kind == "act") {
            return episode.act(seen, {}, time_of(event)).message();
        } else if (kind == "reward") {
            episode.reward(event["value"], event["decision"].get<std::int64_t>(), event["final"].get<bool>());
        } else if (kind == "clock") {
            *clock = *clock + event["seconds"].get<double>();
        } else if (kind == "sealed") {
            EXPECT_TRUE(agent.flush());
            EXPECT_EQ(server->segments().size(), event["count"].get<std::size_t>());
        } else {
            episode.end(seen, ending_of(event["ending"]), {}, time_of(event));
        }
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

json described(const v1::Segment& segment) {
    const bool is_policy = segment.decided_by() == v1::DECIDED_BY_UNSPECIFIED;
    json found;
    found["start"] = segment.start();
    found["decided_by"] = is_policy ? "policy" : "incumbent";
    found["ending"] = segment.ending() == v1::ENDING_CONTINUES    ? "continues"
                      : segment.ending() == v1::ENDING_TERMINATED ? "terminated"
                                                                  : "truncated";
    const Rows both = column<float>(segment, 0);
    found["seen"] = json::array();
    for (std::size_t row = 0; row < both.size(); row += 2) {
        found["seen"].push_back(both[row]);
    }
    found["action"] = is_policy ? json() : json(column<std::uint8_t>(segment, 1));
    found["reward"] = column<float>(segment, 2);
    Rows elapsed(segment.elapsed().size() / sizeof(float));
    std::memcpy(elapsed.data(), segment.elapsed().data(), segment.elapsed().size());
    found["elapsed"] = segment.elapsed().empty() ? json() : json(elapsed);
    return found;
}

TEST(Recordings, EveryRecordingGivesTheGoldenSegments) {
    std::ifstream file(RL4SYS_CONFORMANCE "/vectors/recordings.json");
    ASSERT_TRUE(file) << "conformance/vectors/recordings.json is missing";
    for (const json& recording : json::parse(file)["recordings"]) {
        SCOPED_TRACE(recording["name"].get<std::string>());
        json values = recording["settings"];
        values["client_id"] = "test";
        ClientSettings settings = quick_settings();
        const ClientSettings given = parse_settings(values.dump());
        settings.reward_window = given.reward_window;
        settings.max_segment_length = given.max_segment_length;
        const auto server = std::make_shared<FakeServer>();
        server->accepts_incumbent = true;
        const auto clock = std::make_shared<std::atomic<double>>(100.0);
        client::Start start = client::fresh_start(settings);
        start.clock = [clock] { return clock->load(); };
        Agent agent = client::connect_over(settings, server, nullptr, start);
        Episode episode = agent.episode();
        for (const json& event : recording["events"]) {
            const std::string problem = replay(agent, episode, server, clock, event);
            EXPECT_EQ(problem.empty(), !event.contains("problem")) << event << ": " << problem;
            EXPECT_NE(problem.find(event.value("problem", "")), std::string::npos) << problem;
        }
        ASSERT_TRUE(agent.flush());
        json segments = json::array();
        for (const v1::Segment& segment : server->segments()) {
            segments.push_back(described(segment));
        }
        EXPECT_EQ(segments, recording["segments"]);
    }
}

TEST(Recordings, ATimeoutIsATimeWithItsUnitAndStandsAlone) {
    const auto window = [](const std::string& values) {
        return parse_settings(R"({"client_id": "a", )" + values + "}").reward_window;
    };
    EXPECT_EQ(window(R"("reward_timeout": "5s")").seconds, 5.0);
    EXPECT_TRUE(window(R"("reward_timeout": "5s")").cuts);
    for (const char* values :
         {R"("reward_timeout": 5)", R"("reward_timeout": "-5s")", R"("reward_timeout": "5s", "reward_window": 16)"}) {
        EXPECT_THROW(window(values), SettingsError) << values;
    }
}

}  // namespace
}  // namespace rl4sys::testing
