// Compressed pushes, against the golden vectors.
#include "wire/compression.hpp"

#include <gtest/gtest.h>

#include "golden.hpp"
#include "weights/packing.hpp"

namespace rl4sys::wire {
namespace {

using golden::Json;

const Json& cases() {
    static const Json read = Json::parse(golden::read_file("pushes.json"));
    return read;
}

std::string bytes_of(const std::string& hexadecimal) {
    std::string bytes;
    for (std::size_t place = 0; place < hexadecimal.size(); place += 2) {
        bytes.push_back(static_cast<char>(std::stoi(hexadecimal.substr(place, 2), nullptr, 16)));
    }
    return bytes;
}

std::string decompressed(const std::string& frame, std::size_t size) {
    const std::vector<std::uint8_t> content = decompress(frame.data(), frame.size(), size);
    return {content.begin(), content.end()};
}

TEST(Compression, SegmentsAreSentAsFramesWhereThatIsSmaller) {
    for (const Json& given : cases().at("segments")) {
        SCOPED_TRACE(given.at("name").get<std::string>());
        const std::string segment = bytes_of(given.at("segment"));
        PushRequest request;
        request.segments.push_back({0, segment, 0});
        compress_push(request);
        const PushedSegment& sent = request.segments[0];
        if (given.at("is_frame").get<bool>()) {
            EXPECT_EQ(sent.uncompressed_bytes, segment.size());
            EXPECT_LT(sent.segment.size(), segment.size());
            EXPECT_EQ(decompressed(sent.segment, segment.size()), segment);
        } else {
            EXPECT_EQ(sent.uncompressed_bytes, 0U);
            EXPECT_EQ(sent.segment, segment);
        }
    }
}

TEST(Compression, FramesAreTakenOrRefused) {
    for (const Json& given : cases().at("frames")) {
        SCOPED_TRACE(given.at("name").get<std::string>());
        const std::string frame = bytes_of(given.at("frame"));
        const auto size = given.at("uncompressed_bytes").get<std::size_t>();
        if (given.at("segment").is_null()) {
            EXPECT_THROW(decompressed(frame, size), CorruptPayload);
        } else {
            EXPECT_EQ(decompressed(frame, size), bytes_of(given.at("segment")));
        }
    }
}

}  // namespace
}  // namespace rl4sys::wire
