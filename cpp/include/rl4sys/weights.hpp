/// @file
/// Flat weights, where tensors lie in them, and the patches between versions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "rl4sys/policy_spec.hpp"

namespace rl4sys {

/// All tensors of a policy, one after the other.
using Weights = std::vector<float>;
/// Immutable weights, which threads can share.
using SharedWeights = std::shared_ptr<const Weights>;

/// Weights do not fit a layout.
class LayoutMismatch : public std::invalid_argument {
public:
    using std::invalid_argument::invalid_argument;
};

/// A patch cannot be applied to the present weights, or does not give the version it names.
class PatchMismatch : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The layout of tensors in the flat weights.
class Layout {
public:
    /// Tensors lie in the order given. @throws LayoutMismatch for names given twice or sizes beyond `most_weights`.
    explicit Layout(const std::vector<Tensor>& tensors);

    /// How many floats all tensors have together.
    std::size_t size() const noexcept { return size_; }
    /// The index of the tensor's first value. @throws LayoutMismatch if there is no such tensor.
    std::size_t offset(const std::string& name) const { return find(name).offset; }
    /// The tensor's shape. @throws LayoutMismatch if there is no such tensor.
    const Shape& shape(const std::string& name) const { return find(name).shape; }

private:
    struct Place {
        std::size_t offset;
        Shape shape;
    };
    const Place& find(const std::string& name) const;

    std::map<std::string, Place> places_;
    std::size_t size_ = 0;
};

/// The most values of all tensors together: half a gigabyte.
inline constexpr std::uint64_t most_weights = std::uint64_t{1} << 27;

using Digest = std::array<std::uint8_t, 32>;

/// SHA-256 of some bytes.
Digest sha256(const void* data, std::size_t bytes);
/// SHA-256 of weights as on the wire: little-endian float32.
Digest sha256(const Weights& weights);
/// A digest in lowercase hexadecimal.
std::string to_hex(const Digest& digest);

/// Whether no weight is NaN or infinite.
bool all_finite(const Weights& weights) noexcept;

/// What a payload holds. The numbers are those of `rl4sys.v1.PatchEncoding`.
enum class Encoding : std::uint8_t {
    /// The weights, uncompressed.
    Raw = 1,
    /// The weights in byte planes, compressed.
    Planes = 2,
    /// The bits that differ from the base, in byte planes, compressed.
    Xor = 3,
};

/// Turns version `base` into version `target`; without a base it is a full copy.
struct Patch {
    std::optional<std::uint64_t> base;
    std::uint64_t target = 0;
    Encoding encoding = Encoding::Raw;
    std::string payload;
    /// SHA-256 of the resulting weights.
    Digest sha256{};
    /// How many floats the result has.
    std::uint64_t size = 0;
};

/// The weights of version `patch.target`, verified. A full copy ignores `base`, which may then be null.
///
/// `size` is how many floats the receiver's own layout has. It bounds what a patch can allocate.
/// @throws PatchMismatch: keep acting with the present weights and pull in full.
SharedWeights apply_patch(const Weights* base, const Patch& patch, std::size_t size);

}  // namespace rl4sys
