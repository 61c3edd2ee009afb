#include "weights/packing.hpp"

#include <zstd.h>

#include <string>

namespace rl4sys {

std::vector<std::uint8_t> decompress(const char* payload, std::size_t bytes, std::size_t size) {
    const unsigned long long stated = ZSTD_getFrameContentSize(payload, bytes);
    if (stated == ZSTD_CONTENTSIZE_ERROR || stated == ZSTD_CONTENTSIZE_UNKNOWN) {
        throw CorruptPayload("the payload of " + std::to_string(bytes) +
                             " bytes is not a zstd frame that states its size");
    }
    if (stated != size) {
        throw CorruptPayload("the payload states " + std::to_string(stated) + " bytes of content; expected " +
                             std::to_string(size));
    }
    // ZSTD_decompress would continue with a second frame.
    if (ZSTD_findFrameCompressedSize(payload, bytes) != bytes) {
        throw CorruptPayload("the payload of " + std::to_string(bytes) + " bytes is cut or has bytes after its frame");
    }
    std::vector<std::uint8_t> content(size);
    const std::size_t written = ZSTD_decompress(content.data(), content.size(), payload, bytes);
    if (ZSTD_isError(written) != 0) {
        throw CorruptPayload(std::string("the payload is damaged: ") + ZSTD_getErrorName(written));
    }
    if (written != size) throw CorruptPayload("the payload ends before its stated size");
    return content;
}

std::string compress(const std::string& content) {
    // Higher levels take several times as long for little.
    constexpr int level = 1;
    std::string frame(content.size(), '\0');
    const std::size_t written = ZSTD_compress(frame.data(), frame.size(), content.data(), content.size(), level);
    if (ZSTD_isError(written) != 0 || written >= content.size()) return "";
    frame.resize(written);
    return frame;
}

std::vector<std::uint32_t> from_planes(const std::vector<std::uint8_t>& planes) {
    const std::size_t count = planes.size() / 4;
    std::vector<std::uint32_t> words(count);
    const std::uint8_t* plane = planes.data();
    for (std::size_t i = 0; i < count; ++i) {
        words[i] = static_cast<std::uint32_t>(plane[i]) | static_cast<std::uint32_t>(plane[count + i]) << 8 |
                   static_cast<std::uint32_t>(plane[2 * count + i]) << 16 |
                   static_cast<std::uint32_t>(plane[3 * count + i]) << 24;
    }
    return words;
}

}  // namespace rl4sys
