#include "records/record_log.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "records/frames.hpp"
#include "records/temporary.hpp"

namespace rl4sys::records {
namespace {

using testing::TemporaryDirectory;

std::vector<std::string> all(const RecordLog& log) {
    std::vector<std::string> found;
    log.read_all([&](std::uint64_t, std::string_view payload) { found.emplace_back(payload); });
    return found;
}

void flip(const Path& file, std::size_t at) {
    std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
    stream.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(byte);
}

TEST(RecordLog, FilesRotateAndArePrunedOldestFirst) {
    const TemporaryDirectory directory;
    const auto files = std::make_shared<DiskFiles>();
    RecordLog log(directory.path(), 100, files);
    for (int number = 0; number < 10; ++number) {
        EXPECT_EQ(log.append({std::string(60, static_cast<char>('0' + number))}), static_cast<std::uint64_t>(number));
    }
    EXPECT_EQ(all(log).size(), 10U);
    log.prune(7);
    const auto firsts = first_numbers(files->names(directory.path()));
    EXPECT_LE(firsts.front(), 7U);
    EXPECT_GT(firsts.front(), 4U);
    EXPECT_EQ(all(log).back(), std::string(60, '9'));
}

TEST(RecordLog, DamageOfAFinishedFileIsNotSkipped) {
    const TemporaryDirectory directory;
    const auto files = std::make_shared<DiskFiles>();
    {
        RecordLog log(directory.path(), 100, files);
        log.append({std::string(90, 'a')});
        log.append({std::string(90, 'b')});
    }
    flip(directory.path() / file_name(0), header_bytes + frame_bytes + 3);
    const RecordLog log(directory.path(), 100, files);
    EXPECT_THROW(all(log), RecordsDamaged);
}

TEST(RecordLog, MissingRecordsThatWereDurableAreReportedAsDamage) {
    const TemporaryDirectory directory;
    const auto files = std::make_shared<DiskFiles>();
    {
        RecordLog log(directory.path(), 1000, files);
        log.append({"a", "b", "c"});
    }
    // Reopening makes the records durable and publishes that.
    { const RecordLog log(directory.path(), 1000, files); }
    flip(directory.path() / file_name(0), header_bytes + frame_bytes);
    EXPECT_THROW(RecordLog(directory.path(), 1000, files), RecordsDamaged);
}

TEST(RecordLog, AMissingOrDamagedCommittedEndLosesNoRecord) {
    const TemporaryDirectory directory;
    const auto files = std::make_shared<DiskFiles>();
    {
        RecordLog log(directory.path(), 1000, files);
        log.append({"a", "b"});
    }
    flip(directory.path() / "committed", 9);
    EXPECT_EQ(all(RecordLog(directory.path(), 1000, files)), (std::vector<std::string>{"a", "b"}));
    std::filesystem::remove(directory.path() / "committed");
    EXPECT_EQ(all(RecordLog(directory.path(), 1000, files)), (std::vector<std::string>{"a", "b"}));
}

TEST(RecordLog, UnfinishedFilesAreRemovedAndUnknownFilesKept) {
    const TemporaryDirectory directory;
    std::ofstream(directory.path() / "00000000000000000007.records.tmp") << "half";
    std::ofstream(directory.path() / "notes.txt") << "mine";
    const RecordLog log(directory.path(), 1000, std::make_shared<DiskFiles>());
    EXPECT_FALSE(std::filesystem::exists(directory.path() / "00000000000000000007.records.tmp"));
    EXPECT_TRUE(std::filesystem::exists(directory.path() / "notes.txt"));
}

}  // namespace
}  // namespace rl4sys::records
