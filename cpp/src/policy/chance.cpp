#include "policy/compiler.hpp"
#include "policy/heads.hpp"

namespace rl4sys::detail {
namespace {

/// The register of a head with noise of its own.
FillNoise compile_head_chance(Compiler& compiler, std::size_t first) {
    const Head& head = compiler.spec().head;
    const std::optional<Chance> chance = head.chance();
    if (!chance || chance->size > most_noise) {
        refuse(head_label,
               "draws chance before the program runs, which needs the setting 'noise', a register, and 'size', a "
               "number from 1 to " +
                   std::to_string(most_noise));
    }
    const double deviation = number(head.settings, "std", head_label);
    if (deviation < 0.0) refuse(head_label, "has a setting 'std' below 0");
    const Register& drawn = compiler.assign(chance->name, {static_cast<std::uint32_t>(chance->size)});
    return {drawn.at, drawn.values, first, Distribution::Normal, static_cast<float>(deviation)};
}

}  // namespace

void FillNoise::operator()(float* registers, const float* noise) const noexcept {
    const float* from = noise + first;
    if (distribution == Distribution::Uniform) {
        for (std::size_t i = 0; i < values; ++i) registers[at + i] = from[i];
        return;
    }
    for (std::size_t i = 0; i < values; ++i) registers[at + i] = normal(from[2 * i], from[2 * i + 1]) * deviation;
}

std::vector<FillNoise> compile_chance(Compiler& compiler) {
    std::vector<FillNoise> fills;
    std::size_t first = 0, total = 0;
    for (const Chance& chance : compiler.spec().program.chance) {
        if (chance.size < 1 || chance.size > most_noise - total) {
            refuse("its chance register '" + chance.name.substr(0, 64) + "'",
                   "has " + std::to_string(chance.size) + " numbers; expected at least 1, and at most " +
                       std::to_string(most_noise) + " in all of them");
        }
        total += chance.size;
        const Register& drawn = compiler.assign(chance.name, {static_cast<std::uint32_t>(chance.size)});
        fills.push_back({drawn.at, drawn.values, first, chance.distribution, 1.0F});
        first += chance.uniform_numbers();
    }
    if (compiler.spec().head.kind == HeadKind::NoiseConditioned) {
        fills.push_back(compile_head_chance(compiler, first));
    }
    return fills;
}

}  // namespace rl4sys::detail
