/// @file
/// Hit rates of one cache: of every block of requests, of the second half, and of all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace examples {

class HitRates {
public:
    /// @param requests how many there will be at most, so that nothing is allocated while they are counted.
    HitRates(std::string cache_name, std::size_t requests, std::size_t block);

    void count(bool hit) noexcept {
        if (counted_ % block_ == 0) blocks_.push_back(0);
        blocks_.back() += hit ? 1 : 0;
        later_ += hit && counted_ >= requests_ / 2 ? 1 : 0;
        ++counted_;
    }

    const std::string& name() const noexcept { return name_; }
    std::size_t counted() const noexcept { return counted_; }
    std::size_t block_count() const noexcept { return blocks_.size(); }
    /// In percent, as all rates here; the last block may be shorter.
    double block(std::size_t number) const;
    double second_half() const;
    double all() const;

private:
    std::string name_;
    std::size_t requests_;
    std::size_t block_;
    std::vector<std::uint64_t> blocks_;
    std::uint64_t later_ = 0;
    std::size_t counted_ = 0;
};

}  // namespace examples
