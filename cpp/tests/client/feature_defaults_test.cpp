#include <gtest/gtest.h>

#include <cmath>

#include "client/fake_server.hpp"
#include "client/observation_reader.hpp"

namespace rl4sys::testing {
namespace {

using Rows = std::vector<float>;

const std::string described =
    R"({"client_id": "test", "observation": {"queue": {"shape": 3, "default": [1.0, null, 3.0]},
        "load": {"dtype": "uint8", "shape": [], "default": 5}}})";

/// What a reader with the defaults of these settings makes of an observation: the queue, the load, or what is wrong.
struct Read {
    explicit Read(const Observation& observation) {
        const ClientSettings settings = parse_settings(described);
        auto form = std::make_shared<wire::SegmentFormat>();
        form->observation = settings.observation;
        form->action = {"action", ElementType::Int64, {}};
        const client::SegmentBuffer buffer(form, 1, 1);
        const client::ObservationReader reader(settings.observation, settings.defaults);
        const auto written = reader.write(buffer, 0, observation, {});
        problem = written.problem;
        is_defaulted = written.is_defaulted;
        std::memcpy(queue.data(), buffer.row(0, 0), sizeof(float) * queue.size());
        load = static_cast<int>(*buffer.row(1, 0));
    }

    Rows queue = Rows(3);
    int load = 0;
    std::string problem;
    bool is_defaulted = false;
};

TEST(FeatureDefaults, ADefaultStandsForAnArrayThatIsLeftOut) {
    const Rows queue{4, 5, 6};
    for (const Read& read : {Read({{"queue", queue}}), Read({{"queue", queue}, {"load", ArrayView()}})}) {
        EXPECT_EQ(read.problem, "");
        EXPECT_TRUE(read.is_defaulted);
        EXPECT_EQ(read.queue, queue);
        EXPECT_EQ(read.load, 5);
    }
}

TEST(FeatureDefaults, ADefaultStandsForAFeatureThatIsNan) {
    const std::uint8_t load[] = {7};
    const Read read({{"queue", Rows{NAN, 5, NAN}}, {"load", load}});
    EXPECT_TRUE(read.is_defaulted);
    EXPECT_EQ(read.queue, (Rows{1, 5, 3}));
    EXPECT_EQ(read.load, 7);
}

TEST(FeatureDefaults, AFeatureWithoutADefaultStaysBad) {
    const std::uint8_t load[] = {7};
    const std::string problem = "'queue' contains NaN or infinity";
    EXPECT_EQ(Read({{"queue", Rows{1, NAN, 1}}, {"load", load}}).problem.rfind(problem, 0), 0U);
    EXPECT_EQ(Read({{"queue", Rows{INFINITY, 1, 1}}, {"load", load}}).problem.rfind(problem, 0), 0U);
    EXPECT_EQ(Read({{"load", load}}).problem.rfind(problem, 0), 0U) << "its default has a gap";
    EXPECT_NE(Read({{"queue", Rows{1, 1, 1}}, {"speed", load}}).problem, "") << "a name that the policy does not know";
}

TEST(FeatureDefaults, DefaultedObservationsAreCountedAndRecordedAndAreNotBad) {
    const auto server = std::make_shared<FakeServer>();
    ClientSettings settings = quick_settings();
    settings.defaults = {{"observation", {9.0}}};
    Agent agent = connect_to(server, settings);
    Episode episode = agent.episode();
    ASSERT_TRUE(episode.act(Rows{0, 0}));
    ASSERT_TRUE(episode.act(Rows{NAN, 1}));
    episode.end(Rows{2, 2});
    ASSERT_TRUE(agent.flush());
    EXPECT_EQ(agent.health().defaulted_inputs, 1U);
    EXPECT_EQ(agent.health().bad_inputs, 0U);
    EXPECT_EQ(column<float>(server->segments()[0], 0), (Rows{0, 0, 9, 1, 2, 2}));
}

TEST(FeatureDefaults, ADefaultOfTheWrongKindIsRefused) {
    for (const std::string value : {"\"a\"", "[1, 2]", "[1, 2, \"a\"]"}) {
        try {
            parse_settings(R"({"client_id": "test", "observation": {"queue": {"shape": 3, "default": )" + value +
                           "}}}");
            ADD_FAILURE() << value << " was accepted";
        } catch (const SettingsError& error) {
            EXPECT_NE(std::string(error.what()).find("with null for features without a default"), std::string::npos);
        }
    }
    EXPECT_THROW(parse_settings(R"({"observation": 3, "defaults": {"observation": 1e999}})"), SettingsError);
}

TEST(FeatureDefaults, UnknownArraysAndTwoDefaultsForOneArrayAreRefused) {
    EXPECT_THROW(parse_settings(R"({"observation": {"queue": 3}, "defaults": {"load": 1}})"), SettingsError);
    EXPECT_THROW(parse_settings(R"({"observation": {"queue": {"shape": 3, "default": 1}}, "defaults": {"queue": 0}})"),
                 SettingsError);
}

}  // namespace
}  // namespace rl4sys::testing
