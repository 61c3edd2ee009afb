#include "client/snapshot.hpp"

#include <algorithm>
#include <utility>

namespace rl4sys::client {

ThreadPolicy::ThreadPolicy(const Snapshot& snapshot)
    : interface(snapshot.interface),
      policy(*snapshot.interface->acting, snapshot.weights),
      noise(snapshot.interface->noise_size),
      rows(snapshot.form()->observation.size()) {}

ThreadPolicy& thread_policy(const Snapshot& snapshot) {
    // The latest one first. The key of a policy is not reused before `interface` has expired and the entry is removed.
    using Entry = std::pair<const PolicyInterface*, std::unique_ptr<ThreadPolicy>>;
    thread_local std::vector<Entry> held;
    const PolicyInterface* key = snapshot.interface.get();
    if (held.empty() || held.front().first != key) {
        auto found = std::find_if(held.begin(), held.end(), [key](const Entry& entry) { return entry.first == key; });
        if (found == held.end()) {
            held.erase(std::remove_if(held.begin(), held.end(),
                                      [](const Entry& entry) { return entry.second->interface.expired(); }),
                       held.end());
            held.emplace_back(key, std::make_unique<ThreadPolicy>(snapshot));
            found = held.end() - 1;
        }
        std::rotate(held.begin(), found, found + 1);
    }
    ThreadPolicy& policy = *held.front().second;
    if (policy.policy.weights() != snapshot.weights) {
        policy.policy.load(snapshot.weights);
    }
    return policy;
}

}  // namespace rl4sys::client
