/* The C interface from C: against no server, with a fallback, so that every call can be made. */
#include <rl4sys/rl4sys.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

static void expect(int holds, const char* what) {
    if (!holds) {
        fprintf(stderr, "not so: %s (last error: %s)\n", what, rl4sys_last_error());
        ++failures;
    }
}

static int64_t second(const rl4sys_array* observation, size_t arrays, void* context) {
    ++*(int*)context;
    return arrays == 1 && observation[0].size == 2 ? 1 : -1;
}

/** Decides for a structured action, and fails where the first feature is negative. */
static int decide(const rl4sys_array* observation, size_t arrays, rl4sys_fallback_action* action, void* context) {
    static const int64_t choices[1] = {2};
    static const float numbers[1] = {0.5F};
    (void)context;
    action->choices = choices;
    action->choice_count = 1;
    action->numbers = numbers;
    action->number_count = 1;
    return arrays == 1 && ((const float*)observation[0].data)[0] < 0.0F ? 7 : 0;
}

static void test_structured_actions(void) {
    const char* settings =
        "{\"client_id\": \"c\", \"server\": \"127.0.0.1:1\", \"timeout\": 0.1, \"observation\": 2,"
        " \"action\": {\"rate\": {\"low\": [0], \"high\": [1]}, \"server\": 3}}";
    const float seen[4] = {1.0F, 2.0F, -1.0F, 2.0F};
    rl4sys_agent* agent = NULL;
    rl4sys_episode* episodes[2] = {NULL, NULL};
    rl4sys_action actions[2];
    rl4sys_status statuses[2];
    rl4sys_part part;
    expect(rl4sys_connect_action_json(settings, decide, NULL, &agent) == RL4SYS_OK, "a fallback of any kind is used");
    expect(rl4sys_episode_begin(agent, &episodes[0]) == RL4SYS_OK, "an episode begins");
    expect(rl4sys_episode_begin(agent, &episodes[1]) == RL4SYS_OK, "another one begins");
    expect(rl4sys_act_many(episodes, 2, seen, 2, NULL, 0, actions, statuses) == RL4SYS_FALLBACK_FAILED, "one fails");
    expect(strstr(rl4sys_last_error(), "it returned 7") != NULL, "and says how");
    expect(statuses[0] == RL4SYS_OK && statuses[1] == RL4SYS_FALLBACK_FAILED, "the other one does not");
    expect(actions[0].choice_count == 1 && actions[0].number_count == 1 && actions[0].size == 2,
           "both kinds are there");
    expect(rl4sys_action_part(agent, &actions[0], "rate", &part) == RL4SYS_OK && part.numbers[0] == 0.5F, "the rate");
    expect(rl4sys_action_part(agent, &actions[0], "server", &part) == RL4SYS_OK && part.choices[0] == 2, "the server");
    expect(rl4sys_action_part(agent, &actions[0], "speed", &part) == RL4SYS_BAD_ARGUMENT, "no other part");
    rl4sys_close(agent, 0.5);
    rl4sys_episode_free(episodes[0]);
    rl4sys_episode_free(episodes[1]);
}

static void test_times(void) {
    const char* settings =
        "{\"client_id\": \"c\", \"server\": \"127.0.0.1:1\", \"timeout\": 0.1, \"observation\": 2, \"action\": 3}";
    const float seen[2] = {1.0F, 2.0F};
    int asked = 0;
    rl4sys_agent* agent = NULL;
    rl4sys_episode* episode = NULL;
    rl4sys_action action;
    expect(rl4sys_connect_json(settings, second, &asked, &agent) == RL4SYS_OK, "a fallback is used");
    expect(rl4sys_episode_begin(agent, &episode) == RL4SYS_OK, "an episode begins");
    expect(rl4sys_now(episode, 0.0 / 0.0) == RL4SYS_BAD_ARGUMENT, "a time is a number");
    expect(rl4sys_now(episode, 5.0) == RL4SYS_OK, "it is five");
    expect(rl4sys_act(episode, seen, 2, NULL, 0, &action) == RL4SYS_OK, "a decision has a time");
    expect(rl4sys_now(episode, 4.0) == RL4SYS_OK, "it is four");
    expect(rl4sys_act(episode, seen, 2, NULL, 0, &action) == RL4SYS_BAD_ARGUMENT, "but time never goes back");
    expect(rl4sys_end(episode, seen, 2, RL4SYS_TERMINATED) == RL4SYS_BAD_ARGUMENT, "not even at the end");
    rl4sys_close(agent, 0.5);
    rl4sys_episode_free(episode);
}

static void count_warnings(rl4sys_log_level level, const char* message, void* context) {
    expect(level == RL4SYS_WARNING && strstr(message, "/c.policy cannot be used") != NULL, "a message is a sentence");
    ++*(int*)context;
}

static void test_log(void) {
    char directory[] = "/tmp/rl4sys-c-test-XXXXXX";
    char path[64];
    char settings[256];
    int asked = 0;
    int warnings = 0;
    FILE* damaged = NULL;
    rl4sys_agent* agent = NULL;
    expect(mkdtemp(directory) != NULL, "there is a directory");
    snprintf(path, sizeof path, "%s/c.policy", directory);
    damaged = fopen(path, "w");
    expect(damaged != NULL && fputs("damaged", damaged) >= 0 && fclose(damaged) == 0, "with a damaged policy");
    snprintf(settings, sizeof settings,
             "{\"client_id\": \"c\", \"server\": \"127.0.0.1:1\", \"timeout\": 0.1, \"observation\": 2, "
             "\"action\": 3, \"cache\": \"%s\"}",
             directory);
    rl4sys_log_to(count_warnings, RL4SYS_WARNING, &warnings);
    expect(rl4sys_connect_json(settings, second, &asked, &agent) == RL4SYS_OK, "a fallback is used");
    rl4sys_close(agent, 0.5);
    rl4sys_log_to(NULL, RL4SYS_WARNING, NULL);
    expect(warnings == 1, "the sink of a C program gets the message");
    remove(path);
    remove(directory);
}

int main(void) {
    const char* settings =
        "{\"client_id\": \"c\", \"server\": \"127.0.0.1:1\", \"timeout\": 0.1, \"observation\": 2, \"action\": 3}";
    const float seen[2] = {1.0F, 2.0F};
    const rl4sys_array array = {"observation", seen, 2, RL4SYS_FLOAT32};
    int asked = 0;
    rl4sys_agent* agent = NULL;
    rl4sys_episode* episode = NULL;
    rl4sys_action action;
    rl4sys_health health;

    expect(rl4sys_connect_json("{\"sever\": 1}", NULL, NULL, &agent) == RL4SYS_BAD_SETTINGS, "settings are checked");
    expect(strstr(rl4sys_last_error(), "did you mean 'server'?") != NULL, "the error says what was meant");
    expect(rl4sys_connect("/absent.json", NULL, NULL, &agent) == RL4SYS_BAD_SETTINGS, "the file is looked for");
    expect(rl4sys_connect_json(settings, NULL, NULL, &agent) == RL4SYS_NOT_CONNECTED, "there is no server");
    expect(rl4sys_connect_json(NULL, NULL, NULL, &agent) == RL4SYS_BAD_ARGUMENT, "NULL is refused");
    expect(agent == NULL, "no agent was made");

    expect(rl4sys_connect_json(settings, second, &asked, &agent) == RL4SYS_OK, "a fallback is used");
    expect(rl4sys_episode_begin(agent, &episode) == RL4SYS_OK, "an episode begins");
    expect(rl4sys_act(episode, seen, 2, NULL, 0, &action) == RL4SYS_OK, "the fallback decides");
    expect(action.choice == 1 && action.is_fallback && action.decision == 0 && action.size == 1, "as it should");
    expect(rl4sys_act_arrays(episode, &array, 1, &action) == RL4SYS_OK && asked == 2, "arrays by name do too");
    expect(rl4sys_took(episode, &array, 1, 2) == RL4SYS_OK, "the system decides by itself");
    expect(rl4sys_took(episode, NULL, 0, 2) == RL4SYS_BAD_ARGUMENT, "about something");
    expect(rl4sys_reward(episode, 1.0) == RL4SYS_OK, "a reward is taken");
    expect(rl4sys_reward_decision(episode, 1.0, 7) == RL4SYS_BAD_ARGUMENT, "there is no decision 7");
    expect(rl4sys_end(episode, NULL, 0, RL4SYS_TERMINATED) == RL4SYS_OK, "the episode ends");
    expect(rl4sys_act(episode, seen, 2, NULL, 0, &action) == RL4SYS_ENDED, "and is over");
    expect(strcmp(rl4sys_version(), PROJECT_VERSION_TEXT) == 0, "the library has the version of the project");
    expect(strcmp(rl4sys_version(), RL4SYS_VERSION) == 0, "header and library have one version");
    memset(&health, 1, sizeof health);
    expect(rl4sys_get_health_sized(agent, &health, offsetof(rl4sys_health, age)) == RL4SYS_OK, "an older program asks");
    expect(health.decisions == 0x0101010101010101, "nothing is written beyond what it knows");
    expect(rl4sys_get_health(agent, &health) == RL4SYS_OK, "health is available");
    expect(health.version == -1 && health.fallback_decisions == 2 && !health.connected, "and true");
    expect(strncmp(health.runtime, "native-", 7) == 0, "with what runs the policy");
    expect(health.incumbent_decisions == 1, "also about the system's own decisions");
    expect(strcmp(health.off, "no_policy") == 0 && strcmp(health.mode, "explore") == 0,
           "it says why the policy is off");
    expect(health.decision_time[RL4SYS_TIME_BUCKETS - 1] == 0 && health.record_share == 1.0, "decisions are timed");
    expect(rl4sys_drops(agent, "overflow_oldest") == 0, "nothing was dropped");
    expect(rl4sys_flush(agent, 1.0) == RL4SYS_OK, "nothing is left to be sent");
    rl4sys_close(agent, 0.5);
    rl4sys_episode_free(episode);
    test_structured_actions();
    test_times();
    test_log();
    rl4sys_close(NULL, 0.0);
    return failures == 0 ? 0 : 1;
}
