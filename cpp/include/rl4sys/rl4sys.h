/**
 * @file
 * The client for C and for languages that can call C. Functions return a status; `rl4sys_last_error` has the message.
 *
 * Handles are thread-safe. The promises of `Agent` and `Episode` in agent.hpp hold here too: `rl4sys_act`
 * never waits for the network and never fails because the server is unreachable.
 */
#ifndef RL4SYS_H
#define RL4SYS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** The version of this header; `rl4sys_version` has that of the library. */
#define RL4SYS_VERSION "0.2.0"

typedef struct rl4sys_agent rl4sys_agent;
typedef struct rl4sys_episode rl4sys_episode;

typedef enum rl4sys_status {
    RL4SYS_OK = 0,
    /** The settings are invalid. */
    RL4SYS_BAD_SETTINGS = 1,
    /** There is no policy to act with: the server is unreachable or refuses, and there is no cache and no fallback. */
    RL4SYS_NOT_CONNECTED = 2,
    /** An observation, mask, reward or another argument is invalid. */
    RL4SYS_BAD_ARGUMENT = 3,
    /** The mask forbids every choice. */
    RL4SYS_NOTHING_ALLOWED = 4,
    /** The episode has ended, or the agent is closed. */
    RL4SYS_ENDED = 5,
    /** The timeout passed. */
    RL4SYS_TIMEOUT = 6,
    /** The process was forked after connecting. */
    RL4SYS_FORKED = 7,
    /** Any other error. */
    RL4SYS_FAILED = 8,
    /** The policy may not decide at present, and there is no fallback. */
    RL4SYS_POLICY_OFF = 9,
    /** The fallback failed, or returned something that is not an action. */
    RL4SYS_FALLBACK_FAILED = 10
} rl4sys_status;

typedef enum rl4sys_ending { RL4SYS_TERMINATED = 1, RL4SYS_TRUNCATED = 2 } rl4sys_ending;

/** The types of values in arrays; the numbers are those of the wire. */
typedef enum rl4sys_type {
    RL4SYS_BOOL = 1,
    RL4SYS_UINT8 = 2,
    RL4SYS_UINT16 = 3,
    RL4SYS_UINT32 = 4,
    RL4SYS_UINT64 = 5,
    RL4SYS_INT8 = 6,
    RL4SYS_INT16 = 7,
    RL4SYS_INT32 = 8,
    RL4SYS_INT64 = 9,
    RL4SYS_FLOAT32 = 11,
    RL4SYS_FLOAT64 = 12
} rl4sys_type;

/** One array of an observation. Where there is only one, its name may be NULL. */
typedef struct rl4sys_array {
    const char* name;
    const void* data;
    size_t size; /**< Values, not bytes. */
    rl4sys_type type;
} rl4sys_array;

/** A decision. */
typedef struct rl4sys_action {
    int64_t choice;         /**< The first of `choices`. */
    const int64_t* choices; /**< NULL where actions are numbers only. Valid until the episode's next decision. */
    const float* numbers;   /**< NULL where actions are choices only. Valid until the episode's next decision. */
    size_t size;            /**< Choices and numbers together. */
    int64_t decision;       /**< The id of this decision, for late rewards. */
    int is_fallback;        /**< Whether the fallback chose it. */
    size_t choice_count;
    size_t number_count;
} rl4sys_action;

/** A part of a structured action: choices or numbers. */
typedef struct rl4sys_part {
    const int64_t* choices; /**< NULL where the part is numbers. Valid until the episode's next decision. */
    const float* numbers;   /**< NULL where the part is choices. Valid until the episode's next decision. */
    size_t size;
} rl4sys_part;

enum { RL4SYS_TIME_BUCKETS = 24 };

/** The state of an agent at one point in time; see health.hpp. */
typedef struct rl4sys_health {
    int connected;
    int64_t version; /**< -1 before the first policy. */
    double age;      /**< Seconds since that version arrived; -1 before the first. */
    uint64_t decisions;
    uint64_t fallback_decisions;
    uint64_t open_episodes;
    uint64_t backlog;
    uint64_t backlog_bytes;
    uint64_t acknowledged;
    uint64_t drops; /**< Of all reasons together; `rl4sys_drops` has each. */
    uint64_t late_rewards;
    uint64_t damaged_patches;
    int stopped;   /**< Whether nothing is sent or received at present: refused, or a thread died. */
    char mode[16]; /**< "explore", "exploit" or "observe". */
    char off[16];  /**< Why the policy does not decide: "control", "kill_file", "lease", "no_policy"; "" if it does. */
    char control[256]; /**< The latest order of an operator, with its author and reason. Long texts are cut. */
    uint64_t control_sequence;
    double record_share; /**< The share of episodes that the server asked to record. */
    uint64_t observed_decisions;
    uint64_t agreed_decisions;
    uint64_t decision_time[RL4SYS_TIME_BUCKETS]; /**< A sample: bucket i counts less than 2^i microseconds. */
    uint64_t versions_not_taken;
    uint64_t thinned_episodes;
    uint64_t unrecorded_decisions;
    char lineage[64];
    char lineage_problem[512]; /**< Why the versions of the server are not followed; "" if they are. */
    char warning[512];         /**< What the server says is wrong with this client; "" if nothing is. */
    uint64_t bad_inputs;
    uint64_t defaulted_inputs;
    uint64_t unanswered_decisions; /**< With `decide: server`: those that the server did not answer in time. */
    uint64_t incumbent_decisions;  /**< Those that the system took by itself and reported with `rl4sys_took`. */
    char last_error[512];          /**< The last problem, with what to do about it; "" if there was none. */
    char stopped_because[512];     /**< Why nothing is sent or received at present; "" if it is. */
    char runtime[32];              /**< What runs the policy: the kernel set, such as "native-avx2". */
} rl4sys_health;

typedef enum rl4sys_log_level {
    RL4SYS_DEBUG = 0,
    RL4SYS_INFO = 1,
    RL4SYS_WARNING = 2,
    RL4SYS_ERROR = 3
} rl4sys_log_level;

/** Called from any thread, with one message at a time; it must not call this library. */
typedef void (*rl4sys_log_sink)(rl4sys_log_level level, const char* message, void* context);

/** Chooses an action where the policy may not or cannot decide; for actions of one choice. A mask that was given is the
 *  last array, "action_mask". */
typedef int64_t (*rl4sys_fallback)(const rl4sys_array* observation, size_t arrays, void* context);

/** The action of a fallback: choices, numbers, or for mixed actions both; those of a structured action in the order of
 *  its parts. The arrays are read as soon as the fallback has returned. */
typedef struct rl4sys_fallback_action {
    const int64_t* choices;
    size_t choice_count;
    const float* numbers;
    size_t number_count;
} rl4sys_fallback_action;

/** Chooses an action of any kind where the policy may not or cannot decide. Returns 0, or anything else if it failed.
 */
typedef int (*rl4sys_action_fallback)(const rl4sys_array* observation, size_t arrays, rl4sys_fallback_action* action,
                                      void* context);

/** The version of the library, such as "0.2.0". */
const char* rl4sys_version(void);
/** Send log messages of `least` and above to `sink`, with `context`; NULL silences them. */
void rl4sys_log_to(rl4sys_log_sink sink, rl4sys_log_level least, void* context);
/** The error of this thread's last call that did not return RL4SYS_OK. Valid until its next such call. */
const char* rl4sys_last_error(void);

/** Connect with the settings of a JSON file. `fallback` may be NULL. */
rl4sys_status rl4sys_connect(const char* config_path, rl4sys_fallback fallback, void* context, rl4sys_agent** agent);
/** Connect with settings in JSON; paths are relative to the working directory. */
rl4sys_status rl4sys_connect_json(const char* settings, rl4sys_fallback fallback, void* context, rl4sys_agent** agent);
/** The same two, with a fallback for actions of any kind. */
rl4sys_status rl4sys_connect_action(const char* config_path, rl4sys_action_fallback fallback, void* context,
                                    rl4sys_agent** agent);
rl4sys_status rl4sys_connect_action_json(const char* settings, rl4sys_action_fallback fallback, void* context,
                                         rl4sys_agent** agent);
/** Send all sealed segments and wait until the server acknowledged them. */
rl4sys_status rl4sys_flush(rl4sys_agent* agent, double timeout);
/** Fills as much of the state as a program of any version knows: `size` is its sizeof(rl4sys_health), to which later
 *  versions only add at the end. */
rl4sys_status rl4sys_get_health_sized(const rl4sys_agent* agent, rl4sys_health* health, size_t size);
/** The same for a program that is built with the header of the very library that it runs with. */
rl4sys_status rl4sys_get_health(const rl4sys_agent* agent, rl4sys_health* health);
/** How many segments were dropped for this reason, such as "overflow_oldest". */
uint64_t rl4sys_drops(const rl4sys_agent* agent, const char* reason);
/** Truncate open episodes, send the backlog for up to `timeout` seconds, stop, and free the agent.
 *  Episodes must still be freed, before or after. NULL is allowed. */
void rl4sys_close(rl4sys_agent* agent, double timeout);

/** Start an episode. Free it with `rl4sys_episode_free`, which truncates it unless it has ended. */
rl4sys_status rl4sys_episode_begin(rl4sys_agent* agent, rl4sys_episode** episode);
void rl4sys_episode_free(rl4sys_episode* episode);

/** Choose the action for one array of float32; `mask` (0: forbidden) may be NULL. */
rl4sys_status rl4sys_act(rl4sys_episode* episode, const float* observation, size_t size, const uint8_t* mask,
                         size_t mask_size, rl4sys_action* action);
/** Choose the action for arrays by name; a mask is the array "action_mask". */
rl4sys_status rl4sys_act_arrays(rl4sys_episode* episode, const rl4sys_array* observation, size_t arrays,
                                rl4sys_action* action);
/** Choose an action for each of `count` episodes of one agent, as `rl4sys_act` does: `observations` has `count` rows of
 *  `size` values, `masks` (may be NULL) as many rows of `mask_size`. `statuses` (may be NULL) has the result of each;
 * the function returns the first that is not RL4SYS_OK. */
rl4sys_status rl4sys_act_many(rl4sys_episode* const* episodes, size_t count, const float* observations, size_t size,
                              const uint8_t* masks, size_t mask_size, rl4sys_action* actions, rl4sys_status* statuses);
/** What time it is, for all later calls about this episode until the next such call: seconds of a clock that never goes
 *  back. Call it before every decision of an episode or never: a learner with a `horizon` discounts by the time between
 *  decisions. */
rl4sys_status rl4sys_now(rl4sys_episode* episode, double now);
/** Record a decision that the system took by itself, without asking the policy: the learner may imitate it. A mask is
 *  the array "action_mask". */
rl4sys_status rl4sys_took(rl4sys_episode* episode, const rl4sys_array* observation, size_t arrays, int64_t choice);
/** The same for actions of any kind. */
rl4sys_status rl4sys_took_action(rl4sys_episode* episode, const rl4sys_array* observation, size_t arrays,
                                 const rl4sys_fallback_action* action);
/** A part of a structured action, by its path in the setting `action`, such as "server" or "route.0". */
rl4sys_status rl4sys_action_part(const rl4sys_agent* agent, const rl4sys_action* action, const char* path,
                                 rl4sys_part* part);
/** Add to the reward of the latest decision. */
rl4sys_status rl4sys_reward(rl4sys_episode* episode, double value);
/** Add to the reward of the decision with this id. */
rl4sys_status rl4sys_reward_decision(rl4sys_episode* episode, double value, int64_t decision);
/** End the episode. `observation` is the final observation; NULL if there is none. */
rl4sys_status rl4sys_end(rl4sys_episode* episode, const float* observation, size_t size, rl4sys_ending ending);
rl4sys_status rl4sys_end_arrays(rl4sys_episode* episode, const rl4sys_array* observation, size_t arrays,
                                rl4sys_ending ending);

#ifdef __cplusplus
}
#endif

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
