// Two plug-ins with a client each, in one process: rl4sys_two_copies_test ONE OTHER
#include <dlfcn.h>

#include <cstdio>

namespace {

int try_copy(const char* path) {
    void* plugin = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
        std::fprintf(stderr, "%s\n", ::dlerror());
        return 1;
    }
    const auto try_it = reinterpret_cast<int (*)()>(::dlsym(plugin, "rl4sys_try_copy"));
    return try_it == nullptr ? 1 : try_it();
}

}  // namespace

int main(int count, char** words) {
    for (int number = 1; number < count; ++number) {
        if (const int problem = try_copy(words[number]); problem != 0) {
            std::fprintf(stderr, "%s: problem %d\n", words[number], problem);
            return 1;
        }
    }
    return count == 3 ? 0 : 64;
}
