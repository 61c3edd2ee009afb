// A plug-in that has the client linked into it, as a host may load several of.
#include <rl4sys/rl4sys.h>

namespace {

int64_t one(const rl4sys_array*, size_t, void*) {
    return 1;
}

}  // namespace

/// Connect without a server and decide with the fallback; 0 if that works.
extern "C" __attribute__((visibility("default"))) int rl4sys_try_copy(void) {
    rl4sys_agent* agent = nullptr;
    rl4sys_episode* episode = nullptr;
    const char* settings =
        R"({"client_id": "copy", "server": "127.0.0.1:1", "timeout": 0.2, "observation": 2, "action": 3})";
    if (rl4sys_connect_json(settings, one, nullptr, &agent) != RL4SYS_OK) {
        return 1;
    }
    const float seen[] = {1.0F, 2.0F};
    rl4sys_action action;
    const bool works = rl4sys_episode_begin(agent, &episode) == RL4SYS_OK &&
                       rl4sys_act(episode, seen, 2, nullptr, 0, &action) == RL4SYS_OK && action.choice == 1;
    rl4sys_episode_free(episode);
    rl4sys_close(agent, 0.1);
    return works ? 0 : 2;
}
