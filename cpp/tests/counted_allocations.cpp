// In place of glibc's: `operator new` and the C functions alike come here.
#include "counted_allocations.hpp"

#include <cstdlib>

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
}

namespace {

thread_local bool is_counting = false;
thread_local std::size_t count = 0;

void note() {
    count += is_counting ? 1 : 0;
}

}  // namespace

extern "C" {

void* malloc(std::size_t size) {
    note();
    return __libc_malloc(size);
}

void* calloc(std::size_t number, std::size_t size) {
    note();
    return __libc_calloc(number, size);
}

void* realloc(void* memory, std::size_t size) {
    note();
    return __libc_realloc(memory, size);
}
}

namespace rl4sys::testing {

void count_allocations(bool counting) {
    count = counting ? 0 : count;
    is_counting = counting;
}

std::size_t counted_allocations() {
    return count;
}

}  // namespace rl4sys::testing
