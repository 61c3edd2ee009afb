#include "records/frames.hpp"

#include <gtest/gtest.h>

#include "records/crc32.hpp"

namespace rl4sys::records {
namespace {

TEST(Crc32, AgreesWithTheKnownAnswerAndCanBeContinued) {
    EXPECT_EQ(crc32("123456789"), 0xCBF43926U);
    EXPECT_EQ(crc32("56789", crc32("1234")), 0xCBF43926U);
    EXPECT_EQ(crc32(""), 0U);
}

TEST(Frames, AFrameIsReadBackAndADamagedOneIsNot) {
    std::string data;
    append_frame(data, 7, 3, "hello");
    ASSERT_EQ(data.size(), frame_bytes + 5);
    const auto frame = decode_frame(data, 0);
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->number, 7U);
    EXPECT_EQ(frame->durable, 3U);
    EXPECT_EQ(data.substr(frame->begin, frame->end - frame->begin), "hello");
    for (std::size_t at = 0; at < data.size(); ++at) {
        std::string damaged = data;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
        EXPECT_FALSE(decode_frame(damaged, 0)) << "byte " << at;
    }
    EXPECT_FALSE(decode_frame(data.substr(0, data.size() - 1), 0));
}

TEST(Frames, AHeaderNamesItsFirstRecordAndSaysWhatIsWrong) {
    const std::string header = encode_header(42);
    EXPECT_EQ(header.size(), header_bytes);
    EXPECT_EQ(header_fault(header, 42), "");
    EXPECT_NE(header_fault(header, 41).find("record 42 comes first"), std::string::npos);
    EXPECT_NE(header_fault(header.substr(0, 10), 42).find("10 bytes"), std::string::npos);
}

TEST(Frames, OnlyNamesOfRecordFilesAreParsed) {
    EXPECT_EQ(file_name(42), "00000000000000000042.records");
    const std::vector<std::string> names{file_name(42), "lock",       "committed",
                                         file_name(0),  "42.records", "99999999999999999999.records"};
    EXPECT_EQ(first_numbers(names), (std::vector<std::uint64_t>{0, 42}));
}

}  // namespace
}  // namespace rl4sys::records
