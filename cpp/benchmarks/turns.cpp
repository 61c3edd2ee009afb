// Decisions of one policy in turns with another runtime: rl4sys_turns_benchmark SPEC.json WEIGHTS.bin [KERNEL_SET]
//
// For each line "ROWS DECISIONS" on the standard input it makes that many decisions, of ROWS rows each, and prints the
// CPU time of one in nanoseconds. benchmarks/cpp_policy.py lets ONNX Runtime work in between, so that both have the
// same neighbours.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "rl4sys/policy.hpp"

namespace {

/// CPU time of this thread in nanoseconds.
double cpu_time() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

std::string read_file(const char* path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(std::string("Cannot read ") + path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

rl4sys::SharedWeights read_weights(const char* path) {
    const std::string bytes = read_file(path);
    auto weights = std::make_shared<rl4sys::Weights>(bytes.size() / sizeof(float));
    std::copy_n(bytes.data(), weights->size() * sizeof(float), reinterpret_cast<char*>(weights->data()));
    return weights;
}

/// Rows of bytes from 0 to 255, or of float32 from 0 to 1, that differ.
std::vector<std::string> some_rows(const rl4sys::PolicySpec& spec, std::size_t rows) {
    std::vector<std::string> inputs;
    for (const rl4sys::ArraySpec& input : spec.program.inputs) {
        const std::size_t values = rows * input.values();
        std::string bytes(values * rl4sys::element_size(input.type), '\0');
        for (std::size_t i = 0; i < values; ++i) {
            const auto byte = static_cast<std::uint8_t>(i * 37);
            const float number = static_cast<float>(byte) / 255.0F;
            if (input.type == rl4sys::ElementType::UInt8) std::memcpy(&bytes[i], &byte, 1);
            if (input.type == rl4sys::ElementType::Float32) std::memcpy(&bytes[i * 4], &number, 4);
        }
        inputs.push_back(std::move(bytes));
    }
    return inputs;
}

double time_of(rl4sys::Policy& policy, std::size_t rows, std::size_t decisions) {
    const std::vector<std::string> inputs = some_rows(policy.spec(), rows);
    std::vector<const void*> observation;
    for (const std::string& input : inputs) observation.push_back(input.data());
    const std::vector<float> noise(rows * policy.noise_size() + 1, 0.5F);
    const double begin = cpu_time();
    for (std::size_t decision = 0; decision < decisions; ++decision) {
        if (rows == 1) {
            policy.decide(observation.data(), noise.data());
        } else {
            policy.decide_rows(rows, observation.data(), noise.data());
        }
    }
    return (cpu_time() - begin) / static_cast<double>(decisions);
}

}  // namespace

int main(int count, char** words) {
    if (count < 3) {
        std::fprintf(stderr, "usage: %s SPEC.json WEIGHTS.bin [KERNEL_SET]\n", words[0]);
        return 64;
    }
    try {
        const std::string kernels = count > 3 ? words[3] : rl4sys::kernel_set();
        rl4sys::Policy policy(rl4sys::policy_from_json(read_file(words[1])), read_weights(words[2]), kernels);
        std::size_t rows = 0, decisions = 0;
        while (std::cin >> rows >> decisions) {
            std::printf("%.1f\n", time_of(policy, std::max<std::size_t>(1, rows), std::max<std::size_t>(1, decisions)));
            std::fflush(stdout);
        }
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
