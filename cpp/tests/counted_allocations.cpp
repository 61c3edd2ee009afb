// In a file of its own: where the compiler sees these operators and their users together, it warns of malloc and
// delete.
#include "counted_allocations.hpp"

#include <cstdlib>
#include <new>

namespace {

thread_local bool is_counting = false;
thread_local std::size_t count = 0;

void* allocate(std::size_t size) {
    count += is_counting ? 1 : 0;
    void* memory = std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    return memory;
}

}  // namespace

void* operator new(std::size_t size) {
    return allocate(size);
}
void* operator new[](std::size_t size) {
    return allocate(size);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete[](void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    std::free(memory);
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
